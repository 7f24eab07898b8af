/* SPDX-License-Identifier: Apache-2.0 */
#include "../observe/reason.h"
#include "cli.h"
#include "format.h"

const char cli_reasons_help[] =
	"usage: culvert reasons [--json]\n\n"
	"Lists the reasons for which a stream is not (or no longer) accelerated, as culvert ss and culvert stat name them.\n\n"
	"  -j, --json  one JSON object, reason: explanation\n"
	"  -h, --help  this text\n\n"
	"Exit status: 0; 2 = usage.\n";

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

int cli_reasons(int argc, char **argv)
{
	struct cli_json j = { .out = stdout };
	bool json = false;
	int c;

	while ((c = cli_getopt(argc, argv, ":jh", options, "reasons")) != -1) {
		if (c == 'h') {
			fputs(cli_reasons_help, stdout);
			return CLI_OK;
		}
		if (c != 'j')
			return CLI_USAGE;
		json = true;
	}
	if (optind < argc) {
		cli_error("reasons takes no '%s'", argv[optind]);
		return CLI_USAGE;
	}
	if (json)
		cli_json_open(&j, NULL, '{');
	for (unsigned i = 0; i < CV_REASON_COUNT; i++) {
		if (json)
			cli_json_str(&j, cv_reason_name(i), cv_reason_text(i));
		else
			printf("%-12s  %s\n", cv_reason_name(i), cv_reason_text(i));
	}
	if (json)
		cli_json_close(&j, '}');
	return CLI_OK;
}
