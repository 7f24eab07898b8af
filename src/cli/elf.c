/* SPDX-License-Identifier: Apache-2.0 */
#include "elf.h"
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#endif

#define PHDRS_MAX 64
#define DYN_MAX 1024
#define NOTE_MAX 4096

static int read_at(int fd, void *buf, size_t len, uint64_t at)
{
	ssize_t n = at > INT64_MAX - len ? 0 : pread(fd, buf, len, (off_t)at);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EBADMSG;
}

/* A string that ends within the buffer or the file. */
static int read_string(int fd, char *buf, size_t size, uint64_t at)
{
	ssize_t n = at > INT64_MAX - size ? 0 : pread(fd, buf, size, (off_t)at);

	if (n <= 0 || !memchr(buf, '\0', (size_t)n))
		return -EBADMSG;
	return 0;
}

static int read_interp(int fd, const Elf64_Phdr *ph, struct cli_elf *e)
{
	if (ph->p_filesz == 0 || ph->p_filesz > sizeof(e->interp))
		return -EBADMSG;
	return read_string(fd, e->interp, ph->p_filesz, ph->p_offset);
}

/* The Go linker leaves a note whose owner is "Go". A note that we cannot follow proves nothing. */
static bool has_go_note(int fd, const Elf64_Phdr *ph)
{
	_Alignas(8) char buf[NOTE_MAX];
	size_t len = ph->p_filesz < sizeof(buf) ? ph->p_filesz : sizeof(buf), at = 0;

	if (read_at(fd, buf, len, ph->p_offset) < 0)
		return false;
	while (len - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr n;
		uint64_t name, desc;

		memcpy(&n, buf + at, sizeof(n));
		at += sizeof(n);
		name = ((uint64_t)n.n_namesz + 3) & ~3ull;
		desc = ((uint64_t)n.n_descsz + 3) & ~3ull;
		if (name > len - at)
			return false;
		if (n.n_namesz >= 3 && memcmp(buf + at, "Go", 3) == 0)
			return true;
		if (name + desc > len - at)
			return false;
		at += name + desc;
	}
	return false;
}

static uint64_t file_offset(const Elf64_Phdr *ph, unsigned n, uint64_t addr)
{
	for (unsigned i = 0; i < n; i++)
		if (ph[i].p_type == PT_LOAD && addr >= ph[i].p_vaddr && addr - ph[i].p_vaddr < ph[i].p_filesz)
			return ph[i].p_offset + (addr - ph[i].p_vaddr);
	return 0;
}

static void find_sanitizer(int fd, const Elf64_Phdr *ph, unsigned n, const Elf64_Phdr *dynamic, struct cli_elf *e)
{
	Elf64_Dyn dyn[DYN_MAX];
	size_t count = dynamic->p_filesz / sizeof(dyn[0]);
	uint64_t strings = 0;
	char name[64];

	count = count < DYN_MAX ? count : DYN_MAX;
	if (read_at(fd, dyn, count * sizeof(dyn[0]), dynamic->p_offset) < 0)
		return;
	for (size_t i = 0; i < count && dyn[i].d_tag != DT_NULL; i++)
		if (dyn[i].d_tag == DT_STRTAB)
			strings = file_offset(ph, n, dyn[i].d_un.d_ptr);
	for (size_t i = 0; strings && i < count && dyn[i].d_tag != DT_NULL; i++) {
		if (dyn[i].d_tag != DT_NEEDED || dyn[i].d_un.d_val > UINT32_MAX)
			continue;
		/* A name too long for us is no sanitizer's. */
		if (read_string(fd, name, sizeof(name), strings + dyn[i].d_un.d_val) == 0 && cli_elf_is_sanitizer(name, strlen(name)))
			strcpy(e->sanitizer, name);
	}
}

int cli_elf_read(int fd, struct cli_elf *e)
{
	Elf64_Phdr ph[PHDRS_MAX];
	Elf64_Ehdr h;
	bool dynamic_seen = false;
	int err;

	memset(e, 0, sizeof(*e));
	memset(&h, 0, sizeof(h));
	err = read_at(fd, &h, sizeof(Elf32_Ehdr), 0);
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return err && err != -EBADMSG ? err : -ENOEXEC;
	if (err)
		return err;
	e->bits = h.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
	e->machine = h.e_machine;
	if (h.e_ident[EI_DATA] != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB))
		e->machine = (uint16_t)(h.e_machine << 8 | h.e_machine >> 8);
	if (e->bits != 64 || e->machine != OUR_MACHINE || e->machine != h.e_machine) {
		e->foreign = true;
		return 0;
	}
	err = read_at(fd, &h, sizeof(h), 0);
	if (err)
		return err;
	if (h.e_type != ET_EXEC && h.e_type != ET_DYN)
		return -ENOEXEC;
	if (h.e_phentsize != sizeof(ph[0]) || h.e_phnum == 0 || h.e_phnum > PHDRS_MAX)
		return -EBADMSG;
	err = read_at(fd, ph, h.e_phnum * sizeof(ph[0]), h.e_phoff);
	for (unsigned i = 0; !err && i < h.e_phnum; i++) {
		if (ph[i].p_type == PT_INTERP) {
			err = read_interp(fd, &ph[i], e);
		} else if (ph[i].p_type == PT_NOTE) {
			e->go |= has_go_note(fd, &ph[i]);
		} else if (ph[i].p_type == PT_DYNAMIC && !dynamic_seen) {
			dynamic_seen = true;
			find_sanitizer(fd, ph, h.e_phnum, &ph[i], e);
		}
	}
	e->is_static = !e->interp[0];
	return err;
}

const char *cli_elf_machine(unsigned machine)
{
	switch (machine) {
	case EM_386:
		return "x86 (32 bits)";
	case EM_X86_64:
		return "x86-64";
	case EM_ARM:
		return "ARM (32 bits)";
	case EM_AARCH64:
		return "AArch64";
	case EM_RISCV:
		return "RISC-V";
	case EM_PPC64:
		return "POWER";
	case EM_S390:
		return "s390";
	default:
		return NULL;
	}
}

bool cli_elf_is_sanitizer(const char *name, size_t len)
{
	static const char *const names[] = { "libasan.", "libclang_rt.asan", "libtsan.", "libclang_rt.tsan", "liblsan.", "libhwasan." };
	const char *base = memrchr(name, '/', len);
	size_t left = base ? len - (size_t)(base + 1 - name) : len;

	base = base ? base + 1 : name;
	for (size_t i = 0; i < CV_ARRAY_LEN(names); i++)
		if (left >= strlen(names[i]) && strncmp(base, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}
