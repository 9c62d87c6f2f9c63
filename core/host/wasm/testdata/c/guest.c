// A registry in C, without the SDK: it publishes one row and ends at Drain. guest.wasm was built with
//   python -m ziglang cc --target=wasm32-wasi -O2 -Wl,-z,stack-size=65536 -s -o guest.wasm guest.c
#include <stdint.h>
#include <unistd.h>

static uint8_t message[1 << 20];

static int fill(void *to, uint32_t n) {
	for (uint8_t *p = to; n > 0;) {
		ssize_t k = read(0, p, n);
		if (k <= 0) return 0;
		p += k;
		n -= k;
	}
	return 1;
}

static int next(void) {
	uint32_t n;
	return fill(&n, 4) && n <= sizeof message && fill(message, n);
}

int main(void) {
	// Ready{version: 1, plugin: "c", kind: REGISTRY, publishes: ["services"]}, Rows{services: k}, Synced.
	static const uint8_t answer[] = {
		19, 0, 0, 0, 0x0a, 17, 0x08, 1, 0x12, 1, 'c', 0x20, 1, 0x32, 8, 's', 'e', 'r', 'v', 'i', 'c', 'e', 's',
		23, 0, 0, 0, 0x32, 21, 0x12, 19, 0x0a, 8, 's', 'e', 'r', 'v', 'i', 'c', 'e', 's', 0x12, 7, 0x0a, 1, 'k', 0x32, 2, 0x0a, 0,
		2, 0, 0, 0, 0x3a, 0,
	};
	if (!next()) return 1; // Hello
	if (write(1, answer, sizeof answer) != sizeof answer) return 2;
	while (next())
		if (message[0] == 0x22) return 0; // Drain
	return 0;
}
