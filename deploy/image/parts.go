package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Elements of SPDX 2.3 in JSON. Source: https://spdx.github.io/spdx-spec/v2.3/.
type (
	spdx struct {
		Version       string         `json:"spdxVersion"`
		Licence       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      creation       `json:"creationInfo"`
		Packages      []part         `json:"packages"`
		Relationships []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	part struct {
		ID       string     `json:"SPDXID"`
		Name     string     `json:"name"`
		Version  string     `json:"versionInfo,omitempty"`
		Download string     `json:"downloadLocation"`
		Analyzed bool       `json:"filesAnalyzed"`
		Said     string     `json:"licenseDeclared"`
		Found    string     `json:"licenseConcluded"`
		Right    string     `json:"copyrightText"`
		Sums     []sum      `json:"checksums,omitempty"`
		Refs     []external `json:"externalRefs,omitempty"`
	}
	sum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	external struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const unsaid = "NOASSERTION"

// parts are what a program says that it is made of, as SPDX.
func (s spec) parts(program []byte, path string) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	hash := sha256.Sum256(program)
	digest := hex.EncodeToString(hash[:])
	doc := spdx{
		Version: "SPDX-2.3", Licence: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "coxswain-" + s.version,
		Namespace: "https://github.com/coxswain-mesh/coxswain/spdx/" + digest,
		Creation:  creation{s.created.Format(time.RFC3339), []string{"Tool: coxswain-image"}},
		Packages: []part{{
			ID: "SPDXRef-coxswain", Name: info.Main.Path, Version: s.version, Download: unsaid, Said: "Apache-2.0", Found: "Apache-2.0", Right: unsaid,
			Sums: []sum{{"SHA256", digest}},
		}},
		Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-coxswain"}},
	}
	add := func(name, version string) {
		id := fmt.Sprintf("SPDXRef-%d", len(doc.Packages))
		doc.Packages = append(doc.Packages, part{
			ID: id, Name: name, Version: version, Download: unsaid, Said: unsaid, Found: unsaid, Right: unsaid,
			Refs: []external{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + name + "@" + version}},
		})
		doc.Relationships = append(doc.Relationships, relationship{"SPDXRef-coxswain", "DEPENDS_ON", id})
	}
	add("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(m.Path, m.Version)
	}
	return json.MarshalIndent(doc, "", " ")
}
