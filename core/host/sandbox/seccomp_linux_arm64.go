package sandbox

import "golang.org/x/sys/unix"

// interfaces: 64-bit calls alone; programs for 32 bits need `sandbox.unconfined`.
func interfaces() []calls {
	return []calls{native(unix.AUDIT_ARCH_AARCH64, unix.SYS_KEXEC_FILE_LOAD)}
}
