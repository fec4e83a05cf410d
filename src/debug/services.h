/*
 * services.h: the names of the services that a platform may lack (os/platform.h).
 *
 * Above: options.c. Below: os.h.
 */
#ifndef SY_DEBUG_SERVICES_H
#define SY_DEBUG_SERVICES_H

/* What one of the bits SY_OS_... means, for people: "guard pages". */
const char *sy_service_meaning(unsigned service);

#endif
