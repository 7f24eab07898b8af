/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall() and vfork(): the two that C cannot wrap. vfork returns twice into its caller's frame; syscall(SYS_clone, ...) may return on another stack.
 *
 * syscall() goes to cv_syscall_routed() for the numbers that syscall.c has marked in cv_syscall_map, and jumps to libc's for all others, arguments untouched.
 * A clone that shares our memory goes to libc's too: its child has a stack of its own, so that nothing may stand between it and its caller.
 */
#include "real.h"
#include <sys/syscall.h>

#define STR_(x) #x
#define STR(x) STR_(x)
#define CLONE_VM_BIT 8
_Static_assert(CLONE_VM == 1 << CLONE_VM_BIT, "the bit is tested below");

#if defined(__x86_64__)
__asm__(".text\n"
	".globl syscall\n"
	".type syscall, @function\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	cmpq	$511, %rdi\n"
	"	ja	1f\n"
	"	leaq	cv_syscall_map(%rip), %rax\n"
	"	btq	%rdi, (%rax)\n"
	"	jnc	1f\n"
	"	cmpq	$" STR(SYS_clone) ", %rdi\n"
	"	jne	2f\n"
	"	btq	$" STR(CLONE_VM_BIT) ", %rsi\n"
	"	jc	1f\n"
	"2:	jmp	cv_syscall_routed\n"
	"1:	jmp	*cv_syscall_next(%rip)\n"
	"	.cfi_endproc\n"
	".size syscall, .-syscall\n"

	".globl vfork, __vfork\n"
	".type vfork, @function\n"
	".type __vfork, @function\n"
	"vfork:\n"
	"__vfork:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	subq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call	cv_vfork_begin\n"
	"	addq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp	*%rax\n"
	"	.cfi_endproc\n"
	".size vfork, .-vfork\n"
	".size __vfork, .-__vfork\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl syscall\n"
	".type syscall, %function\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	hint	#34\n" /* bti c */
	"	cmp	x0, #511\n"
	"	b.hi	1f\n"
	"	adrp	x9, cv_syscall_map\n"
	"	add	x9, x9, :lo12:cv_syscall_map\n"
	"	lsr	x10, x0, #6\n"
	"	ldr	x9, [x9, x10, lsl #3]\n"
	"	lsr	x9, x9, x0\n" /* by x0 modulo 64 */
	"	tbz	x9, #0, 1f\n"
	"	cmp	x0, #" STR(SYS_clone) "\n"
	"	b.ne	2f\n"
	"	tbnz	x1, #" STR(CLONE_VM_BIT) ", 1f\n"
	"2:	b	cv_syscall_routed\n"
	"1:	adrp	x16, cv_syscall_next\n"
	"	ldr	x16, [x16, :lo12:cv_syscall_next]\n"
	"	br	x16\n"
	"	.cfi_endproc\n"
	".size syscall, .-syscall\n"

	".globl vfork, __vfork\n"
	".type vfork, %function\n"
	".type __vfork, %function\n"
	"vfork:\n"
	"__vfork:\n"
	"	.cfi_startproc\n"
	"	hint	#34\n"
	"	stp	x29, x30, [sp, #-16]!\n"
	"	.cfi_adjust_cfa_offset 16\n"
	"	.cfi_rel_offset x29, 0\n"
	"	.cfi_rel_offset x30, 8\n"
	"	bl	cv_vfork_begin\n"
	"	mov	x16, x0\n"
	"	ldp	x29, x30, [sp], #16\n"
	"	.cfi_adjust_cfa_offset -16\n"
	"	.cfi_restore x29\n"
	"	.cfi_restore x30\n"
	"	br	x16\n"
	"	.cfi_endproc\n"
	".size vfork, .-vfork\n"
	".size __vfork, .-__vfork\n");
#endif
