/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers without logic of their own, made from symbols.def.
 */
#include "wrap.h"

#define CV_MAKE_HAND(name, ret, params, args)
#define CV_MAKE_PASS(name, ret, params, args) \
	CV_EARLY ret name params \
	{ \
		return cv_real.name args; \
	}
#define CV_MAKE_FRESH(name, ret, params, args) \
	ret name params \
	{ \
		ret made = cv_real.name args; \
\
		cv_fd_fresh(made); \
		return made; \
	}
#define CV_MAKE_EXEC(name, ret, params, args) \
	ret name params \
	{ \
		cv_proc_before_exec(); \
		return cv_real.name args; \
	}
#define CV_SYM(name, ret, params, args, how, when) CV_MAKE_##how(name, ret, params, args)
#define CV_VAR(name, ret, ta, a, tb, b)
#define CV_OWN(name)
#define CV_SAME(name, ret, params, args, other) \
	ret name params \
	{ \
		return other args; \
	}
#include "symbols.def"
