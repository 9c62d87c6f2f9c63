package artifact

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
)

// key is one by which artifacts may be signed.
type key struct {
	public crypto.PublicKey
	// name is for people: the beginning of the SHA-256 of the key.
	name string
}

const (
	// mostKeys and mostSignatures bound what is tried, mostSignature the size of one, in bytes.
	mostKeys       = 16
	mostSignatures = 32
	mostSignature  = 256 << 10
)

// readKeys reads the public keys of a file.
func readKeys(file string) ([]key, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("pull.key: %w", err)
	}
	var all []key
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("pull.key: %s has a block %.40q; `cosign generate-key-pair` writes a PUBLIC KEY into cosign.pub", file, block.Type)
		}
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("pull.key: %s: %w", file, err)
		}
		sum := sha256.Sum256(block.Bytes)
		all = append(all, key{public, hex.EncodeToString(sum[:6])})
	}
	if len(all) == 0 || len(all) > mostKeys {
		return nil, fmt.Errorf("pull.key: %s has %d public keys in PEM, and should have 1 to %d", file, len(all), mostKeys)
	}
	return all, nil
}

// made reports whether the key made a signature of a text.
func (k key) made(text, signature []byte) bool {
	sum := sha256.Sum256(text)
	switch public := k.public.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(public, sum[:], signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(public, text, signature)
	}
	return false
}

// signature is one of a manifest, as registries have it.
type signature struct {
	// Text that is signed, with what is put before it; Payload of it says what is meant.
	Text      []byte `json:"text"`
	Payload   []byte `json:"payload"`
	Signature []byte `json:"signature"`
	// Statement: the payload is a statement of in-toto; otherwise it is a simple signature.
	Statement bool `json:"statement,omitempty"`
}

// signsAs is what a statement says that is a signature, and no word on how something was built.
// Source: sigstore/cosign, specs/COSIGN_PREDICATE_SPEC.md and its "sign" command.
const signsAs = "https://sigstore.dev/cosign/sign/v1"

// of reports whether the signature is about a manifest.
func (s signature) of(d string) bool {
	if !s.Statement {
		var simple struct {
			Critical struct {
				Type  string
				Image struct {
					Digest string `json:"docker-manifest-digest"`
				}
			}
		}
		return json.Unmarshal(s.Payload, &simple) == nil && simple.Critical.Image.Digest == d &&
			strings.EqualFold(simple.Critical.Type, "cosign container image signature")
	}
	var statement struct {
		PredicateType string
		Subject       []struct{ Digest map[string]string }
	}
	if json.Unmarshal(s.Payload, &statement) != nil || statement.PredicateType != signsAs {
		return false
	}
	for _, subject := range statement.Subject {
		if "sha256:"+subject.Digest["sha256"] == d {
			return true
		}
	}
	return false
}

// signed returns whose signature one of the digests has, that of the whole or that of its part for
// this platform.
func (f *fetcher) signed(ctx context.Context, keys []key, digests ...string) (string, error) {
	digests = slices.Compact(digests)
	for _, d := range digests {
		if by := signedBy(keys, d, f.kept(d)); by != "" {
			return by, nil
		}
	}
	tried := 0
	for _, d := range digests {
		all, err := f.signatures(ctx, digest.Digest(d))
		if err != nil {
			return "", fmt.Errorf("its signatures: %w", err)
		}
		tried += len(all)
		if by := signedBy(keys, d, all); by != "" {
			text, err := json.Marshal(all)
			if err == nil {
				err = f.store.keep(signatures, digest.Digest(d).Encoded(), text)
			}
			return by, err
		}
	}
	return "", fmt.Errorf("no key of %s (pull.key) signed %s: %d signatures are there; `cosign sign --key` makes one", f.src.Key, digests[0], tried)
}

func signedBy(keys []key, d string, all []signature) string {
	for _, s := range all {
		for _, k := range keys {
			if s.of(d) && k.made(s.Text, s.Signature) {
				return "key " + k.name
			}
		}
	}
	return ""
}

// kept are the signatures that the store has; they are checked like any.
func (f *fetcher) kept(d string) (all []signature) {
	file, err := os.Open(f.store.path(signatures, digest.Digest(d).Encoded()))
	if err != nil {
		return nil
	}
	defer file.Close()
	_ = json.NewDecoder(io.LimitReader(file, mostSignatures*mostSignature*2)).Decode(&all)
	return all
}

// signatures asks the registry for those of a manifest: those of cosign's bundles, which refer to
// it, and those under the tag that cosign gave them before.
func (f *fetcher) signatures(ctx context.Context, d digest.Digest) (all []signature, err error) {
	repo, err := f.registry()
	if err != nil {
		return nil, err
	}
	simple, err := f.underTag(ctx, d)
	if err != nil {
		return nil, err
	}
	all = append(all, simple...)
	var refer []ocispec.Descriptor
	repo.ReferrerListMaxPages = 4
	err = repo.Referrers(ctx, ocispec.Descriptor{Digest: d, MediaType: ocispec.MediaTypeImageManifest}, "", func(some []ocispec.Descriptor) error {
		refer = append(refer, some...)
		if len(refer) > mostPlatforms {
			return fmt.Errorf("more than %d refer to it", mostPlatforms)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errdef.ErrNotFound) {
		return nil, err
	}
	for _, r := range refer {
		if len(all) == mostSignatures {
			break
		}
		if r.Digest.Validate() != nil || r.ArtifactType != "" && !strings.HasPrefix(r.ArtifactType, bundleType) {
			continue
		}
		bundle, err := f.bundle(ctx, r.Digest)
		if err != nil {
			return nil, err
		}
		all = append(all, bundle...)
	}
	return all, nil
}

// Media types of signatures.
const (
	bundleType = "application/vnd.dev.sigstore.bundle"
	simpleType = "application/vnd.dev.cosign.simplesigning.v1+json"
	simpleSays = "dev.cosignproject.cosign/signature"
)

func (f *fetcher) underTag(ctx context.Context, d digest.Digest) (all []signature, err error) {
	repo, err := f.registry()
	if err != nil {
		return nil, err
	}
	_, body, err := repo.FetchReference(ctx, "sha256-"+d.Encoded()+".sig")
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, mostManifest))
	if err != nil {
		return nil, err
	}
	is, err := readManifest(text)
	if err != nil {
		return nil, err
	}
	for _, layer := range is.Layers {
		made, err := base64.StdEncoding.DecodeString(layer.Annotations[simpleSays])
		if layer.MediaType != simpleType || err != nil || len(all) == mostSignatures {
			continue
		}
		payload, err := f.small(ctx, layer, mostSignature)
		if err != nil {
			return nil, err
		}
		all = append(all, signature{Text: payload, Payload: payload, Signature: made})
	}
	return all, nil
}

// bundle reads the signatures of a Sigstore bundle that refers to a manifest.
func (f *fetcher) bundle(ctx context.Context, d digest.Digest) (all []signature, err error) {
	text, err := f.manifest(ctx, d)
	if err != nil {
		return nil, err
	}
	is, err := readManifest(text)
	if err != nil || len(is.Layers) != 1 || !strings.HasPrefix(is.Layers[0].MediaType, bundleType) {
		return nil, err
	}
	if text, err = f.small(ctx, is.Layers[0], mostSignature); err != nil {
		return nil, err
	}
	var b struct {
		Envelope struct {
			Payload     []byte `json:"payload"`
			PayloadType string `json:"payloadType"`
			Signatures  []struct {
				Sig []byte `json:"sig"`
			} `json:"signatures"`
		} `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, nil // none that counts
	}
	e := b.Envelope
	// Source: secure-systems-lab/dsse, "protocol.md", PAE.
	signed := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload)
	for _, s := range e.Signatures[:min(len(e.Signatures), mostKeys)] {
		all = append(all, signature{Text: signed, Payload: e.Payload, Signature: s.Sig, Statement: true})
	}
	return all, nil
}
