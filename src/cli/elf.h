/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Just enough of an executable's ELF headers to say whether a preload can reach it. Files may be damaged or hostile: every offset is checked.
 */
#ifndef CV_CLI_ELF_H
#define CV_CLI_ELF_H

#include "../base/base.h"

struct cli_elf {
	bool foreign;	     /* of another class, byte order or machine; then nothing below is set */
	uint16_t machine;    /* EM_... */
	unsigned bits;	     /* 32 or 64 */
	bool is_static;	     /* names no interpreter: no loader runs, nothing is preloaded */
	bool go;	     /* built by the Go linker: makes its system calls without libc */
	char interp[128];    /* the loader */
	char sanitizer[64];  /* the sanitizer runtime among its needed libraries, that has to come first in LD_PRELOAD; or "" */
};

/* 0; -ENOEXEC = no ELF executable; -EBADMSG = damaged; or -errno of reading. */
int cli_elf_read(int fd, struct cli_elf *e);
/* "x86-64", ... or NULL. */
const char *cli_elf_machine(unsigned machine);
/* Is it the name of a sanitizer's runtime (any directory)? */
bool cli_elf_is_sanitizer(const char *name, size_t len);

#endif
