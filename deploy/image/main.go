// Command image makes Coxswain's container image without a container engine: from nothing but
// programs, certificates of authorities, time zones, and a list of what the programs are made of
// (SPDX). The same programs give the same digest, wherever it runs.
//
// It is a module of its own: what it needs is no part of Coxswain.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run makes an image, and prints its digest.
func run(args []string) error {
	var s spec
	var created int64
	var to, push, parts string
	var plain bool
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.Func("program", "OS/ARCHITECTURE=FILE, once for each platform", s.add)
	flags.StringVar(&s.zones, "zones", "", "Go's lib/time/zoneinfo.zip")
	flags.StringVar(&s.documents, "documents", "", "files that go into /usr/share/doc/coxswain, joined by commas")
	flags.StringVar(&s.version, "version", "", "the program's version")
	flags.StringVar(&s.revision, "revision", "", "the commit that it was built from")
	flags.Int64Var(&created, "created", 0, "when that was made, in seconds since 1970")
	flags.StringVar(&to, "to", "", "folder to write an OCI layout into, which must not exist")
	flags.StringVar(&push, "push", "", "reference to push it to, with the credentials that Docker's config has")
	flags.StringVar(&parts, "parts", "", "file to write a list of the one program's parts into (SPDX), and nothing else")
	flags.BoolVar(&plain, "plain", false, "push without TLS")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s.created = time.Unix(created, 0).UTC()
	if parts != "" && flags.NArg() == 0 && len(s.programs) == 1 && to+push == "" {
		return s.list(s.programs[0].file, parts)
	}
	if flags.NArg() > 0 || len(s.programs) == 0 || (to == "") == (push == "") || parts != "" {
		return errors.New("say at least one --program, and one of --to and --push; or one --program and --parts")
	}
	index, lists, err := s.index()
	if err != nil {
		return err
	}
	if to != "" {
		err = write(index, to)
	} else {
		err = send(index, lists, push, plain)
	}
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}

func (s *spec) add(arg string) error {
	platform, file, found := strings.Cut(arg, "=")
	system, architecture, whole := strings.Cut(platform, "/")
	if !found || !whole || file == "" {
		return fmt.Errorf("%q is not OS/ARCHITECTURE=FILE", arg)
	}
	s.programs = append(s.programs, program{v1.Platform{OS: system, Architecture: architecture}, file})
	return nil
}

func write(index v1.ImageIndex, to string) error {
	if _, err := os.Stat(to); err == nil {
		return fmt.Errorf("%s exists", to)
	}
	_, err := layout.Write(to, index)
	return err
}

// list writes down what a program is made of.
func (s spec) list(program, to string) error {
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	parts, err := s.parts(text, program)
	if err != nil {
		return err
	}
	return os.WriteFile(to, parts, 0o644) //nolint:gosec // for everybody to read
}

// send pushes the images, and the lists of their parts, which registries find by the digests of the
// images (OCI's referrers).
func send(index v1.ImageIndex, lists []v1.Image, to string, plain bool) error {
	var options []name.Option
	if plain {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(to, options...)
	if err != nil {
		return err
	}
	keys := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if err := remote.WriteIndex(ref, index, keys); err != nil {
		return err
	}
	for _, list := range lists {
		digest, err := list.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(ref.Context().Digest(digest.String()), list, keys); err != nil {
			return fmt.Errorf("list of parts: %w", err)
		}
	}
	return nil
}
