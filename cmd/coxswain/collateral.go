package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// collateralCommand writes what packages install beside the program.
func collateralCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "collateral DIR",
		Short: "Write manual pages and completions into a folder, for packages",
		Long: `Write what packages install beside the program into a folder, which is made if there is none: manual pages of all
commands (DIR/man1), and completions for bash, zsh, fish and PowerShell (DIR/completions). The same version writes the same bytes.`,
		Example: `  coxswain collateral collateral/`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usageError{fmt.Errorf("%s takes one folder, not %q; see %s --help", c.CommandPath(), args, c.CommandPath())}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			files, err := collateral(c.Root())
			if err != nil {
				return err
			}
			for name, text := range files {
				path := filepath.Join(args[0], name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // for everybody to read
					return err
				}
			}
			fmt.Fprintf(p.out, "%d files in %s\n", len(files), args[0])
			return nil
		},
	}
}

// collateral returns files by their paths.
func collateral(root *cobra.Command) (map[string][]byte, error) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	files := map[string][]byte{}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"coxswain.bash": func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"_coxswain":     func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"coxswain.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
		"coxswain.ps1":  func(b *bytes.Buffer) error { return root.GenPowerShellCompletionWithDesc(b) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, err
		}
		files[filepath.Join("completions", name)] = b.Bytes()
	}
	var below func(c *cobra.Command)
	below = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" {
			return
		}
		files[filepath.Join("man1", manName(c)+".1")] = man(c)
		for _, sub := range c.Commands() {
			below(sub)
		}
	}
	below(root)
	return files, nil
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// man is the manual page of a command, in the language of man(7).
func man(c *cobra.Command) []byte {
	c.InitDefaultHelpFlag()
	var b strings.Builder
	title := manName(c)
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q %q\n", strings.ToUpper(title), "coxswain "+build(), "Coxswain")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(title), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(c.UseLine()))
	if c.Long != "" {
		b.WriteString(".SH DESCRIPTION\n" + paragraphs(c.Long))
	}
	manFlags(&b, "OPTIONS", c.NonInheritedFlags())
	manFlags(&b, "GLOBAL OPTIONS", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	var also []string
	if c.HasParent() {
		also = append(also, manName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			also = append(also, manName(sub))
		}
	}
	if len(also) > 0 {
		b.WriteString(".SH SEE ALSO\n")
		for i, name := range also {
			comma := ","
			if i == len(also)-1 {
				comma = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(name), comma)
		}
	}
	return []byte(b.String())
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fP %s\n%s\n", roff(name), roff(kind), roff(usage))
	})
}

// paragraphs are a text whose paragraphs have empty lines between them. Lines that are set in stay
// lines.
func paragraphs(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(paragraph))
		} else {
			b.WriteString(roff(paragraph) + "\n")
		}
	}
	return b.String()
}

// roff is text that man(7) reads as it stands: of what it is made is nothing a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\t", "    ").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
