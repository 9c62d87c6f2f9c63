package artifact

import (
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
)

// systems and machines are what platforms are made of, as Go names them (go tool dist
// list). Source: OCI Image Index Specification, "platform".
var (
	systems = []string{
		"aix", "android", "darwin", "dragonfly", "freebsd", "illumos", "ios", "linux", "netbsd", "openbsd", "plan9", "solaris", "windows",
	}
	machines = []string{
		"386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le", "riscv64", "s390x",
	}
)

// Check reports, as an error, what is wrong with the platform that a file is said to be for.
func (f File) Check() error {
	switch {
	case f.OS == "" && f.Architecture == "":
		return nil
	case !slices.Contains(systems, f.OS):
		return fmt.Errorf("%s/%s: there is no system %q%s; a path that has = in it begins with ./ or /",
			f.OS, f.Architecture, f.OS, nearest.Suggest(f.OS, systems))
	case !slices.Contains(machines, f.Architecture):
		return fmt.Errorf("%s/%s: there is no architecture %q%s", f.OS, f.Architecture, f.Architecture, nearest.Suggest(f.Architecture, machines))
	}
	return nil
}

// checkFiles reports, as an error, which file is not what it is said to be, or too large to be
// pulled.
func checkFiles(files []File, most uint64) error {
	for _, f := range files {
		if err := f.Check(); err != nil {
			return err
		}
		info, err := os.Stat(f.Path)
		switch {
		case err != nil:
			return err
		case info.IsDir():
			return fmt.Errorf("%s is a folder; name the file in it", f.Path)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is no plain file", f.Path)
		case info.Size() == 0:
			return fmt.Errorf("%s is empty", f.Path)
		case uint64(info.Size()) > most:
			return fmt.Errorf("%s has %d bytes, more than %d (--bytes); whoever pulls it has to allow as many", f.Path, info.Size(), most)
		}
		if err := f.checkContent(); err != nil {
			return err
		}
	}
	return nil
}

// checkContent reports, as an error, that a file is for another platform than it is said to be. Of
// one that is neither a module nor in a format that names its platform nothing is known.
func (f File) checkContent() error {
	module, err := isModule(f.Path)
	switch {
	case err != nil:
		return err
	case module && f.OS != "":
		return fmt.Errorf("%s is a WASI module, which runs on each platform: leave %s/%s= out", f.Path, f.OS, f.Architecture)
	case module:
		return nil
	case f.OS == "":
		return fmt.Errorf("%s is no module; say for which platform it is, such as linux/amd64=%s", f.Path, f.Path)
	}
	formatted, machine, err := platformOf(f.Path)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", f.Path, err)
	case formatted != nil && !slices.Contains(formatted, f.OS):
		return fmt.Errorf("%s is a program for %s, not for %s/%s", f.Path, strings.Join(formatted, ", "), f.OS, f.Architecture)
	case formatted != nil && machine != f.Architecture:
		return fmt.Errorf("%s is a program for %s, not for %s/%s", f.Path, machine, f.OS, f.Architecture)
	}
	return nil
}

// platformOf returns the systems whose format a program has, and the machine it is for; no systems:
// its format is another one.
func platformOf(file string) (systems []string, machine string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	begin := make([]byte, 4)
	if n, _ := f.ReadAt(begin, 0); n < 2 {
		return nil, "", nil
	}
	switch {
	case string(begin) == elf.ELFMAG:
		is, err := elf.NewFile(f)
		if err != nil {
			return nil, "", fmt.Errorf("it begins as a program (ELF), and is none: %w", err)
		}
		return []string{"linux", "android", "dragonfly", "freebsd", "illumos", "netbsd", "openbsd", "solaris"}, elfMachine(is.FileHeader), nil
	case string(begin[:2]) == "MZ":
		is, err := pe.NewFile(f)
		if err != nil {
			return nil, "", fmt.Errorf("it begins as a program (PE), and is none: %w", err)
		}
		names := map[uint16]string{
			pe.IMAGE_FILE_MACHINE_I386: "386", pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARMNT: "arm", pe.IMAGE_FILE_MACHINE_ARM64: "arm64",
		}
		return []string{"windows"}, orUnknown(names[is.Machine]), nil
	}
	is, err := macho.NewFile(f)
	if err != nil {
		return nil, "", nil
	}
	return []string{"darwin", "ios"}, orUnknown(map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[is.Cpu]), nil
}

func orUnknown(machine string) string {
	if machine == "" {
		return "a machine that Go has no name for"
	}
	return machine
}

// elfMachine is Go's name of the machine that a header of ELF says.
func elfMachine(h elf.FileHeader) string {
	little, wide := h.Data == elf.ELFDATA2LSB, h.Class == elf.ELFCLASS64
	name := map[elf.Machine]string{
		elf.EM_386: "386", elf.EM_X86_64: "amd64", elf.EM_ARM: "arm", elf.EM_AARCH64: "arm64", elf.EM_LOONGARCH: "loong64",
		elf.EM_MIPS: "mips", elf.EM_PPC64: "ppc64", elf.EM_S390: "s390x", elf.EM_RISCV: "riscv64",
	}[h.Machine]
	switch {
	case name == "mips" && wide:
		name = "mips64"
	case name == "riscv64" && !wide:
		name = ""
	}
	if little && (strings.HasPrefix(name, "mips") || name == "ppc64") {
		name += "le"
	}
	return orUnknown(name)
}
