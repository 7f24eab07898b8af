dnl SPDX-License-Identifier: Apache-2.0

dnl CV_SANITIZER: --enable-asan (address and undefined behaviour) or --enable-tsan. Sets CV_SAN_CFLAGS, CV_SAN_LDFLAGS, CV_SAN (none, asan,
dnl tsan) and CV_SAN_LIB, the runtime that has to come first in LD_PRELOAD when an uninstrumented program loads libculvert.so.
AC_DEFUN([CV_SANITIZER], [
  AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [build with AddressSanitizer and UndefinedBehaviorSanitizer])], [], [enable_asan=no])
  AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer])], [], [enable_tsan=no])
  AS_IF([test "x$enable_asan" = xyes && test "x$enable_tsan" = xyes],
    [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
  CV_SAN=none CV_SAN_CFLAGS= CV_SAN_LDFLAGS= CV_SAN_LIB= CV_SAN_WRAP=
  AS_IF([test "x$enable_asan" = xyes],
    [CV_SAN=asan
     CV_SAN_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
     CV_SAN_LDFLAGS="-fsanitize=address,undefined"
     CV_SAN_LIB=`$CC -print-file-name=libasan.so`])
  AS_IF([test "x$enable_tsan" = xyes],
    [CV_SAN=tsan
     CV_SAN_CFLAGS="-fsanitize=thread -fno-omit-frame-pointer"
     CV_SAN_LDFLAGS="-fsanitize=thread"
     CV_SAN_LIB=`$CC -print-file-name=libtsan.so`])
  AS_IF([test "x$CV_SAN" != xnone], [
    AC_MSG_CHECKING([whether $CC can link with $CV_SAN])
    cv_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $CV_SAN_CFLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       AC_MSG_ERROR([the sanitizer's runtime is missing: apt-get install gcc (libasan8, libtsan2)])])
    CFLAGS=$cv_save_CFLAGS
    dnl gcc 12's runtimes cannot place their shadow when the kernel randomises more than 28 bits; containers may forbid to turn it off.
    AS_IF([setarch -R true 2>/dev/null], [CV_SAN_WRAP="setarch -R"])])
  AC_SUBST([CV_SAN])
  AC_SUBST([CV_SAN_WRAP])
  AC_SUBST([CV_SAN_CFLAGS])
  AC_SUBST([CV_SAN_LDFLAGS])
  AC_SUBST([CV_SAN_LIB])
  AM_CONDITIONAL([SANITIZED], [test "x$CV_SAN" != xnone])
])

dnl CV_WERROR: --enable-werror. Kept out of CFLAGS, so that configure's own tests are not affected.
AC_DEFUN([CV_WERROR], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [make compiler warnings errors])], [], [enable_werror=no])
  AS_IF([test "x$enable_werror" = xyes], [CV_WERROR_CFLAGS=-Werror], [CV_WERROR_CFLAGS=])
  AC_SUBST([CV_WERROR_CFLAGS])
])

dnl CV_INIH_STATIC: the inih parser as an archive that may go into a shared object. libculvert.so may need nothing but libc at load time.
AC_DEFUN([CV_INIH_STATIC], [
  PKG_CHECK_MODULES([INIH], [inih], [], [AC_MSG_ERROR([inih is missing: apt-get install libinih-dev])])
  AC_CACHE_CHECK([for libinih.a, fit for a shared object], [cv_cv_inih_archive], [
    cv_cv_inih_archive=`$CC -print-file-name=libinih.a`
    cv_save_LIBS=$LIBS cv_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -shared -fPIC"
    LIBS="$cv_cv_inih_archive -Wl,-z,text"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <ini.h>
int f(ini_reader reader, void *stream, ini_handler handler);
int f(ini_reader reader, void *stream, ini_handler handler) { return ini_parse_stream(reader, stream, handler, 0); }
]])], [], [cv_cv_inih_archive=no])
    LIBS=$cv_save_LIBS CFLAGS=$cv_save_CFLAGS])
  AS_IF([test "x$cv_cv_inih_archive" = xno],
    [AC_MSG_ERROR([libinih.a is missing or not position independent: apt-get install libinih-dev])])
  INIH_LIBS=$cv_cv_inih_archive
  AC_SUBST([INIH_LIBS])
])

dnl CV_MD_STATIC: SHA-256 as an archive that may go into a shared object, for the same reason.
AC_DEFUN([CV_MD_STATIC], [
  AC_CACHE_CHECK([for libmd.a, fit for a shared object], [cv_cv_md_archive], [
    cv_cv_md_archive=`$CC -print-file-name=libmd.a`
    cv_save_LIBS=$LIBS cv_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -shared -fPIC"
    LIBS="$cv_cv_md_archive -Wl,-z,text"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <sys/types.h>
#include <sha256.h>
void f(SHA256_CTX *c);
void f(SHA256_CTX *c) { SHA256Init(c); }
]])], [], [cv_cv_md_archive=no])
    LIBS=$cv_save_LIBS CFLAGS=$cv_save_CFLAGS])
  AS_IF([test "x$cv_cv_md_archive" = xno],
    [AC_MSG_ERROR([libmd.a is missing or not position independent: apt-get install libmd-dev])])
  MD_LIBS=$cv_cv_md_archive
  AC_SUBST([MD_LIBS])
])
