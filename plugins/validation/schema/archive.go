package schema

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
)

// crds holds an entry GROUP/KIND/VERSION[,VERSION…].json for each schema; its comment says where
// they come from.
//
//go:embed crds.zip
var crds []byte

// Origin returns where the schemas come from, in which version and under which licence.
func Origin() (string, error) {
	archive, err := zip.NewReader(bytes.NewReader(crds), int64(len(crds)))
	if err != nil {
		return "", err
	}
	return archive.Comment, nil
}

// read returns the schema of a kind's version, nil where there is none.
func read(group, kind, version string) ([]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(crds), int64(len(crds)))
	if err != nil {
		return nil, err
	}
	for _, entry := range archive.File {
		versions, ok := strings.CutPrefix(entry.Name, group+"/"+kind+"/")
		if ok && slices.Contains(strings.Split(strings.TrimSuffix(versions, ".json"), ","), version) {
			return unpack(entry)
		}
	}
	return nil, nil
}

func unpack(entry *zip.File) ([]byte, error) {
	r, err := entry.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", entry.Name, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", entry.Name, err)
	}
	return text, r.Close()
}
