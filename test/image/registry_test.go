package image_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/program"
)

// pushed pushes an image, which has to have a digest, to a registry, and reads all of it back, with
// the lists of parts.
func pushed(t *testing.T, tool string, programs []string, digest string) {
	t.Helper()
	addr := program.Registry(t)
	if got := imaged(t, tool, programs, "--push", addr+"/mesh/coxswain:v9.9.9", "--plain"); got != digest {
		t.Errorf("built in another place it has digest %s, not %s", got, digest)
	}
	from := "http://" + addr + "/v2/mesh/coxswain/"
	index := pulled(t, from+"manifests/v9.9.9", digest)
	if len(index.Manifests) != len(platforms) {
		t.Fatalf("it has %d images", len(index.Manifests))
	}
	for _, m := range index.Manifests {
		image := pulled(t, from+"manifests/"+m.Digest, m.Digest)
		if len(image.Layers) != 2 {
			t.Errorf("it has %d layers", len(image.Layers))
		}
		for _, l := range image.Layers {
			fetched(t, from+"blobs/"+l.Digest, l.Digest)
		}
		lists := pulled(t, from+"manifests/"+strings.Replace(m.Digest, ":", "-", 1), "") // where registries without OCI's referrers have them
		if len(lists.Manifests) != 1 {
			t.Fatalf("beside it there are %+v", lists)
		}
		list := pulled(t, from+"manifests/"+lists.Manifests[0].Digest, lists.Manifests[0].Digest)
		if len(list.Layers) != 1 || !strings.Contains(string(fetched(t, from+"blobs/"+list.Layers[0].Digest, list.Layers[0].Digest)), `"SPDX-2.3"`) {
			t.Errorf("beside it there is no list of parts, but %+v", list)
		}
	}
}

// pulled is a manifest or index.
func pulled(t *testing.T, url, digest string) (d described) {
	t.Helper()
	if err := json.Unmarshal(fetched(t, url, digest), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// fetched is what is at a URL; a digest that is given has to be its.
func fetched(t *testing.T, url, digest string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v: %.200s", url, answer.Status, err, text)
	}
	sum := sha256.Sum256(text)
	if is := "sha256:" + hex.EncodeToString(sum[:]); digest != "" && is != digest {
		t.Errorf("%s has digest %s, not %s", url, is, digest)
	}
	return text
}
