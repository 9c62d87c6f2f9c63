package spiffe

import (
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strconv"

	mesh "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// wants are the bundles to fetch, by the keys of their rows: those of the config's endpoints, and
// those that the mesh's settings name (MeshConfig.caCertificates[].spiffeBundleUrl).
func (s *Source) wants(now *state.State) map[string]Endpoint {
	all := map[string]Endpoint{}
	for _, e := range s.config.Endpoints {
		all[e.TrustDomain+"/"+e.URL] = e
	}
	settings, _ := kinds.Mesh(now) // who reads them first says that they can't be read
	for _, c := range settings.CaCertificates {
		url := c.GetSpiffeBundleUrl()
		if url == "" || checkURL(url) != nil {
			continue
		}
		for _, d := range domains(settings, c) {
			all[d+"/"+url] = Endpoint{TrustDomain: d, URL: url}
		}
	}
	return all
}

// given are the bundles that the mesh's settings have (MeshConfig.caCertificates[].pem). The error
// names those that can't be used.
func given(now *state.State) (rows []*sdk.Row, err error) {
	settings, _ := kinds.Mesh(now) // who reads them first says that they can't be read
	var wrong []error
	for i, c := range settings.CaCertificates {
		at := "caCertificates[" + strconv.Itoa(i) + "]"
		if url := c.GetSpiffeBundleUrl(); url != "" {
			if err := checkURL(url); err != nil {
				wrong = append(wrong, fmt.Errorf("%s.spiffeBundleUrl of the mesh's settings: %w", at, err))
			}
			continue
		}
		texts, err := authorities(c.GetPem())
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s.pem of the mesh's settings: %w", at, err))
			continue
		}
		for _, d := range domains(settings, c) {
			payload, err := bundle.Bundle{TrustDomain: d, Certificates: texts}.Payload()
			if err != nil {
				return nil, err
			}
			rows = append(rows, &sdk.Row{Key: d + "/" + at, Source: "the mesh's settings, " + at, Payload: payload})
		}
	}
	return rows, errors.Join(wrong...)
}

// domains are the trust domains that a certificate's authorities sign for: those that it names, or
// else the mesh's own and its aliases. One that names signers of certificates alone is for these.
func domains(settings *mesh.MeshConfig, c *mesh.MeshConfig_CertificateData) []string {
	switch {
	case len(c.TrustDomains) > 0:
		return c.TrustDomains
	case len(c.CertSigners) > 0:
		return nil
	}
	all := append([]string{cmp.Or(settings.TrustDomain, istio.LocalTrustDomain)}, settings.TrustDomainAliases...)
	slices.Sort(all)
	return slices.Compact(all)
}

// authorities parts a text into certificates in PEM, and checks that each can sign.
func authorities(text string) ([]string, error) {
	ders, err := bundle.DER([]string{text})
	switch {
	case err != nil:
		return nil, err
	case len(ders) == 0:
		return nil, errors.New("there is no certificate in it")
	}
	return encode(ders)
}

// encode writes certificates in PEM and checks that each can sign.
func encode(ders [][]byte) (texts []string, err error) {
	for _, der := range ders {
		if err := signs(der); err != nil {
			return nil, err
		}
		texts = append(texts, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	}
	return texts, nil
}
