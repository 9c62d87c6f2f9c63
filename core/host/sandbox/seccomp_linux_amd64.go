package sandbox

import "golang.org/x/sys/unix"

// interfaces: 64-bit calls, and the 32-bit ones (arch/x86/entry/syscalls/syscall_32.tbl), which
// 64-bit programs may use too.
func interfaces() []calls {
	return []calls{
		native(unix.AUDIT_ARCH_X86_64, unix.SYS_KEXEC_FILE_LOAD),
		{
			arch:   unix.AUDIT_ARCH_I386,
			always: []uint32{26, 347, 348, 438, 349, 440, 336, 357, 128, 350, 129, 283, 88, 342},
			core:   []uint32{37, 238, 178, 335, 434},
			thread: []uint32{270},
		},
	}
}
