libculvert_la_SOURCES += \
	src/link/agent.c src/link/agent.h \
	src/link/holder.c src/link/holder.h \
	src/link/internal_fd.c src/link/internal_fd.h \
	src/link/link.h \
	src/link/rendezvous.c \
	src/link/shm.h src/link/shm_ctl.c src/link/shm_data.c src/link/shm_link.c
