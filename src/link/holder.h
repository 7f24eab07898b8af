/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds the other end of a local TCP connection. The agent's thread; never blocks. */
#ifndef CV_HOLDER_H
#define CV_HOLDER_H

#include "agent.h"
#include "link.h"

/* The user whose socket is the server's (else the client's) end of the connection, as this process sees users: 0, or -ENOENT when there is no telling. */
int cv_holder_uid(const struct cv_tuple *t, bool server, uint32_t *uid);
/* May a process of this user be the holder of that end? */
bool cv_holder_is(const struct cv_tuple *t, bool server, uint32_t uid);

#endif
