// A filter by the proxy-wasm ABI, version 0.2.1 (https://github.com/proxy-wasm/spec/tree/main/abi-versions/v0.2.1): each answer gets the header
// `x-module: here`. It needs nothing of C's library.

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name) __attribute__((import_module("env"), import_name(name)))

enum { response_headers = 2, carry_on = 0 };

IMPORT("proxy_add_header_map_value")
unsigned add_header(unsigned map, const char *key, unsigned key_size, const char *value, unsigned value_size);

EXPORT("proxy_abi_version_0_2_1") void version(void) {}
EXPORT("_initialize") void initialize(void) {}

// The host asks for memory to put values into; this module asks for none, so little will do.
static char memory[4096];
EXPORT("proxy_on_memory_allocate") void *allocate(unsigned size) { return size <= sizeof memory ? memory : 0; }

EXPORT("proxy_on_context_create") void create(unsigned context, unsigned parent) { (void)context; (void)parent; }
EXPORT("proxy_on_vm_start") unsigned start(unsigned context, unsigned size) { (void)context; (void)size; return 1; }
EXPORT("proxy_on_configure") unsigned configure(unsigned context, unsigned size) { (void)context; (void)size; return 1; }

EXPORT("proxy_on_response_headers") unsigned answer(unsigned context, unsigned headers, unsigned last) {
	(void)context; (void)headers; (void)last;
	add_header(response_headers, "x-module", 8, "here", 4);
	return carry_on;
}

EXPORT("proxy_on_done") unsigned done(unsigned context) { (void)context; return 1; }
EXPORT("proxy_on_delete") void gone(unsigned context) { (void)context; }
