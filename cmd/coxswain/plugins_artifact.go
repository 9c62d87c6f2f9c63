package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/internal/artifact"
	"github.com/spf13/cobra"
)

// pluginArtifacts are the commands about plugins in registries.
func pluginArtifacts(p *program) []*cobra.Command {
	return []*cobra.Command{pluginPushCommand(p), pluginPullCommand(p), pluginInspectCommand(p), pluginSearchCommand(p)}
}

// howPulled is on what terms commands speak to a registry.
type howPulled struct {
	source artifact.Source
	bytes  string
}

func (h *howPulled) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&h.source.Credentials, "credentials", "", "file like Docker's config.json with who to be (default "+
		"Docker's own, and the programs that it names)")
	f.StringVar(&h.source.CA, "ca", "", "certificates (PEM) of the authorities that the registry's is checked with, in place of the system's")
	f.BoolVar(&h.source.PlainHTTP, "plain-http", false, "speak plain HTTP; a registry on this machine is spoken to so in any case, unless --ca is given")
	f.DurationVar(&h.source.Timeout, "timeout", 5*time.Minute, "for all of it")
	f.StringVar(&h.bytes, "bytes", "256Mi", "most that the artifact may have for a platform, packed and unpacked")
}

// at is where an artifact is that is named on the command line.
func (h *howPulled) at(reference string) (artifact.Source, error) {
	src := h.source
	src.Helpers = src.Credentials == ""
	var size manifest.Size
	if err := size.UnmarshalText([]byte(h.bytes)); err != nil {
		return src, usageError{fmt.Errorf("--bytes: %w", err)}
	}
	src.Bytes = uint64(size)
	if reference == "" {
		return src, nil
	}
	if !strings.Contains(reference, "://") {
		reference = "oci://" + reference
	}
	if err := src.Reference.UnmarshalText([]byte(reference)); err != nil {
		return src, usageError{err}
	}
	return src, nil
}

// scratch is where commands put what they fetch, until the function that it returns is called.
func scratch() (*artifact.Store, func(), error) {
	dir, err := os.MkdirTemp("", "coxswain-artifact-")
	if err != nil {
		return nil, nil, err
	}
	return &artifact.Store{Dir: dir}, func() { _ = os.RemoveAll(dir) }, nil
}

const keyHelp = "file of public keys (PEM), by one of which it must be signed, as cosign signs"

func oneReference(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s wants one REFERENCE, such as registry.example.org/team/headers:1.4", c.CommandPath())}
	}
	return nil
}
