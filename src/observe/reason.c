/* SPDX-License-Identifier: Apache-2.0 */
#include "reason.h"
#include "../base/base.h"

static const char *const names[] = {
#define X(id, name, text) [CV_REASON_##id] = name,
	CV_REASONS(X)
#undef X
};

static const char *const texts[] = {
#define X(id, name, text) [CV_REASON_##id] = text,
	CV_REASONS(X)
#undef X
};

const char *cv_reason_name(unsigned reason)
{
	return reason < CV_ARRAY_LEN(names) ? names[reason] : "?";
}

const char *cv_reason_text(unsigned reason)
{
	return reason < CV_ARRAY_LEN(texts) ? texts[reason] : "unknown to this version of culvert";
}
