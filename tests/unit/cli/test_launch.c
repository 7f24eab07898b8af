/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/launch.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define OTHER EM_AARCH64
#else
#define MACHINE EM_AARCH64
#define OTHER EM_X86_64
#endif

/* A program's headers and nothing else: as much as is looked at. */
static struct image {
	Elf64_Ehdr h;
	Elf64_Phdr ph[4]; /* PT_LOAD, PT_INTERP, PT_DYNAMIC, PT_NOTE */
	char interp[32];
	Elf64_Dyn dyn[4];
	char strings[64];
	struct {
		Elf64_Nhdr h;
		char name[4], desc[4];
	} note;
} image;

static char dir[64], path[128], why[512];
static struct cli_elf elf;

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/cv-launch-XXXXXX");
	return !mkdtemp(dir);
}

static int teardown(void **state)
{
	char cmd[100];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

static Elf64_Phdr segment(uint32_t type, size_t offset, size_t size)
{
	return (Elf64_Phdr){ .p_type = type, .p_offset = offset, .p_vaddr = 0x400000 + offset, .p_filesz = size, .p_memsz = size };
}

static void good(void)
{
	memset(&image, 0, sizeof(image));
	memcpy(image.h.e_ident, ELFMAG, SELFMAG);
	image.h.e_ident[EI_CLASS] = ELFCLASS64;
	image.h.e_ident[EI_DATA] = ELFDATA2LSB;
	image.h.e_type = ET_DYN;
	image.h.e_machine = MACHINE;
	image.h.e_phoff = offsetof(struct image, ph);
	image.h.e_phentsize = sizeof(Elf64_Phdr);
	image.h.e_phnum = 4;
	image.ph[0] = segment(PT_LOAD, 0, sizeof(image));
	image.ph[1] = segment(PT_INTERP, offsetof(struct image, interp), sizeof(image.interp));
	image.ph[2] = segment(PT_DYNAMIC, offsetof(struct image, dyn), sizeof(image.dyn));
	image.ph[3] = segment(PT_NOTE, offsetof(struct image, note), sizeof(image.note));
	strcpy(image.interp, "/lib64/ld-linux-x86-64.so.2");
	image.dyn[0] = (Elf64_Dyn){ .d_tag = DT_NEEDED, .d_un.d_val = 1 };
	image.dyn[1] = (Elf64_Dyn){ .d_tag = DT_NEEDED, .d_un.d_val = 16 };
	image.dyn[2] = (Elf64_Dyn){ .d_tag = DT_STRTAB, .d_un.d_ptr = 0x400000 + offsetof(struct image, strings) };
	memcpy(image.strings + 1, "libasan.so.8", 13);
	memcpy(image.strings + 16, "libc.so.6", 10);
	image.note.h = (Elf64_Nhdr){ .n_namesz = 4, .n_descsz = 4, .n_type = 4 };
	memcpy(image.note.name, "GNU", 4);
}

static int put(const char *name, const void *data, size_t size, mode_t mode)
{
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
	fd = open(path, O_CREAT | O_RDWR, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	return fd;
}

static int read_elf(size_t size)
{
	int fd = put("prog", &image, size, 0755), ret = cli_elf_read(fd, &elf);

	close(fd);
	return ret;
}

static enum cli_reach judge(const void *data, size_t size, mode_t mode)
{
	close(put("prog", data, size, mode));
	return cli_launch_judge(path, "/usr/bin:/bin", &elf, why, sizeof(why));
}

static void test_dynamic(void **state)
{
	(void)state;
	good();
	assert_int_equal(read_elf(sizeof(image)), 0);
	assert_false(elf.foreign);
	assert_false(elf.is_static);
	assert_false(elf.go);
	assert_string_equal(elf.interp, "/lib64/ld-linux-x86-64.so.2");
	assert_string_equal(elf.sanitizer, "libasan.so.8");
	assert_int_equal(judge(&image, sizeof(image), 0755), CLI_REACH_YES);
	memcpy(image.strings + 1, "libxsan.so.8", 13);
	assert_int_equal(read_elf(sizeof(image)), 0);
	assert_string_equal(elf.sanitizer, "");
}

static void test_refused(void **state)
{
	(void)state;
	good();
	image.ph[1].p_type = PT_NULL;
	assert_int_equal(judge(&image, sizeof(image), 0755), CLI_REACH_NO);
	assert_non_null(strstr(why, "statically linked"));
	memcpy(image.note.name, "Go", 3);
	assert_int_equal(judge(&image, sizeof(image), 0755), CLI_REACH_NO);
	assert_non_null(strstr(why, "Go program"));
	good();
	memcpy(image.note.name, "Go", 3);
	assert_int_equal(judge(&image, sizeof(image), 0755), CLI_REACH_NO);
	assert_non_null(strstr(why, "Go program"));
	good();
	image.h.e_machine = OTHER;
	assert_int_equal(judge(&image, sizeof(image), 0755), CLI_REACH_NO);
	assert_non_null(strstr(why, cli_elf_machine(OTHER)));
	good();
	image.h.e_ident[EI_CLASS] = ELFCLASS32;
	image.h.e_machine = EM_386;
	assert_int_equal(judge(&image, sizeof(image), 0755), CLI_REACH_NO);
	assert_non_null(strstr(why, "32 bits"));
	good();
	image.h.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(judge(&image, sizeof(image), 0755), CLI_REACH_NO);
	good();
	strcpy(image.interp, "/lib/ld-musl-x86_64.so.1");
#ifdef __GLIBC__
	assert_int_equal(judge(&image, sizeof(image), 0755), CLI_REACH_NO);
	assert_non_null(strstr(why, "musl"));
#endif
	good();
	assert_int_equal(judge(&image, sizeof(image), 04755), CLI_REACH_NO);
	assert_non_null(strstr(why, "set-user-ID"));
	assert_int_equal(judge(&image, sizeof(image), 02755), CLI_REACH_NO);
	assert_non_null(strstr(why, "set-group-ID"));
	/* Without group execution the bit means something else (mandatory locking, once). */
	assert_int_equal(judge(&image, sizeof(image), 02745), CLI_REACH_YES);
}

static void test_capabilities(void **state)
{
	static const unsigned char cap[20] = { 1, 0, 0, 2, 0, 0x20 }; /* VFS_CAP_REVISION_2, effective; CAP_NET_RAW */

	(void)state;
	good();
	close(put("prog", &image, sizeof(image), 0755));
	if (setxattr(path, "security.capability", cap, sizeof(cap), 0) < 0)
		skip();
	assert_int_equal(cli_launch_judge(path, "", &elf, why, sizeof(why)), CLI_REACH_NO);
	assert_non_null(strstr(why, "capabilities"));
}

static void test_damaged(void **state)
{
	_Alignas(8) static char big[8192];
	unsigned seed = 1;
	int fd;

	(void)state;
	good();
	for (size_t size = 0; size < offsetof(struct image, interp); size++)
		assert_int_equal(read_elf(size), size < SELFMAG ? -ENOEXEC : -EBADMSG);
	image.h.e_phoff = UINT64_MAX - 8;
	assert_int_equal(read_elf(sizeof(image)), -EBADMSG);
	good();
	/* More segments than we have room for, and a file that holds them all. */
	memcpy(big, &image, sizeof(image));
	((Elf64_Ehdr *)big)->e_phnum = 100;
	close(put("prog", big, sizeof(big), 0755));
	fd = open(path, O_RDONLY);
	assert_int_equal(cli_elf_read(fd, &elf), -EBADMSG);
	close(fd);
	good();
	image.ph[1].p_filesz = UINT64_MAX;
	assert_int_equal(read_elf(sizeof(image)), -EBADMSG);
	good();
	memset(image.interp, 'x', sizeof(image.interp));
	assert_int_equal(read_elf(sizeof(image)), -EBADMSG);
	good();
	image.dyn[2].d_un.d_ptr = UINT64_MAX;
	image.dyn[0].d_un.d_val = UINT64_MAX;
	image.note.h.n_namesz = UINT32_MAX;
	assert_int_equal(read_elf(sizeof(image)), 0);
	for (int i = 0; i < 5000; i++) {
		good();
		for (int k = 0; k < 5; k++)
			((char *)&image)[4 + rand_r(&seed) % (sizeof(image) - 4)] = (char)rand_r(&seed);
		read_elf(sizeof(image));
	}
	assert_int_equal(judge("\177ELF\2\1", 6, 0755), CLI_REACH_BROKEN);
	assert_int_equal(judge("\1\2\0\3", 4, 0755), CLI_REACH_BROKEN);
}

static void test_scripts(void **state)
{
	char text[300], inner[140];

	(void)state;
	assert_int_equal(judge("#!/bin/sh\n", 10, 0755), CLI_REACH_YES);
	assert_false(elf.is_static);
	assert_int_equal(judge("#! /usr/bin/env sh\n", 19, 0755), CLI_REACH_YES);
	assert_int_equal(judge("echo without a mark\n", 20, 0755), CLI_REACH_YES);
	assert_int_equal(judge("#!/nonexistent/x\n", 17, 0755), CLI_REACH_BROKEN);
	assert_non_null(strstr(why, "/nonexistent/x"));
	assert_int_equal(judge("#!\n", 3, 0755), CLI_REACH_BROKEN);
	/* set-user-ID means nothing on a script */
	assert_int_equal(judge("#!/bin/sh\n", 10, 04755), CLI_REACH_YES);
	/* an interpreter beyond reach */
	good();
	image.ph[1].p_type = PT_NULL;
	close(put("static", &image, sizeof(image), 0755));
	strcpy(inner, path);
	snprintf(text, sizeof(text), "#!%s -x\n", inner);
	assert_int_equal(judge(text, strlen(text), 0755), CLI_REACH_NO);
	assert_non_null(strstr(why, inner));
	snprintf(text, sizeof(text), "#!/usr/bin/env -S A=1 %s\n", inner);
	assert_int_equal(judge(text, strlen(text), 0755), CLI_REACH_NO);
	/* a script that is its own interpreter */
	snprintf(text, sizeof(text), "#!%s/prog\n", dir);
	assert_int_equal(judge(text, strlen(text), 0755), CLI_REACH_BROKEN);
}

static void test_find(void **state)
{
	char search[200], out[PATH_MAX];

	(void)state;
	close(put("here", "x", 1, 0755));
	close(put("plain", "x", 1, 0644));
	snprintf(search, sizeof(search), "/nonexistent:%s:/bin", dir);
	assert_int_equal(cli_launch_find("here", search, out), 0);
	assert_memory_equal(out, dir, strlen(dir));
	assert_int_equal(cli_launch_find("plain", search, out), -EACCES);
	assert_int_equal(cli_launch_find("absent", search, out), -ENOENT);
	assert_int_equal(cli_launch_find("", search, out), -ENOENT);
	assert_int_equal(cli_launch_find("sh", search, out), 0);
	assert_string_equal(out, "/bin/sh");
	assert_int_equal(cli_launch_find("/bin/sh", "", out), 0);
	assert_int_equal(cli_launch_find("/bin", "", out), -EACCES);
	assert_int_equal(cli_launch_find("/bin/sh/x", "", out), -ENOENT);
}

static void preload_is(const char *old, const char *sanitizer, const char *want)
{
	char *got = cli_launch_preload("/l/libculvert.so", old, sanitizer);

	assert_string_equal(got, want);
	free(got);
}

static void test_preload(void **state)
{
	(void)state;
	preload_is(NULL, "", "/l/libculvert.so");
	preload_is("", "", "/l/libculvert.so");
	preload_is("a.so", "", "/l/libculvert.so:a.so");
	preload_is("a.so b.so", "", "/l/libculvert.so:a.so:b.so");
	preload_is("a.so:/usr/lib/libasan.so.8:b.so", "", "/usr/lib/libasan.so.8:/l/libculvert.so:a.so:b.so");
	preload_is("libasan.so.8", "libasan.so.8", "libasan.so.8:/l/libculvert.so");
	preload_is(NULL, "libasan.so.8", "libasan.so.8:/l/libculvert.so");
	preload_is("/l/libculvert.so:a.so", "", "/l/libculvert.so:a.so");
	preload_is(":: a.so::", "", "/l/libculvert.so:a.so");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dynamic), cmocka_unit_test(test_refused), cmocka_unit_test(test_capabilities), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_scripts), cmocka_unit_test(test_find),    cmocka_unit_test(test_preload),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
