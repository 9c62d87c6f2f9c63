package git

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Types of objects in a pack. Source: Git, "gitformat-pack".
const commitType, treeType, blobType, refDelta = 1, 2, 3, 7

// packed is a pack that is made by hand.
type packed struct {
	body  bytes.Buffer
	count uint32
}

// hash names an object.
func hash(kind int, content []byte) []byte {
	sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", map[int]string{commitType: "commit", treeType: "tree", blobType: "blob"}[kind], len(content)),
		content...))
	return sum[:]
}

func deflate(content []byte) []byte {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	_, _ = z.Write(content)
	_ = z.Close()
	return out.Bytes()
}

// head writes an object's type, and how many bytes it is said to have.
func (p *packed) head(kind int, size uint64) {
	p.count++
	b := byte(kind<<4) | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.body.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	p.body.WriteByte(b)
}

func (p *packed) add(kind int, content []byte) []byte {
	p.head(kind, uint64(len(content)))
	p.body.Write(deflate(content))
	return hash(kind, content)
}

// bytes is the pack; count is how many objects it says it has.
func (p *packed) bytes(count uint32) []byte {
	out := binary.BigEndian.AppendUint32(append([]byte("PACK"), 0, 0, 0, 2), count)
	out = append(out, p.body.Bytes()...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

func leaf(mode, name string, hash []byte) []byte {
	return append(fmt.Appendf(nil, "%s %s\x00", mode, name), hash...)
}

// commit adds a commit with a tree, and returns its name.
func (p *packed) commit(tree []byte) string {
	return hex.EncodeToString(p.add(commitType, fmt.Appendf(nil, "tree %x\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n", tree)))
}

// of makes a commit of a tree that is made of entries.
func of(entries func(p *packed) []byte) (head string, p *packed) {
	p = &packed{}
	return p.commit(p.add(treeType, entries(p))), p
}

func pkt(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// liar serves a real repository until it lies.
type liar struct {
	mu   sync.Mutex
	true http.Handler
	lie  http.HandlerFunc
	// asked counts questions, fetched those for a pack.
	asked, fetched int
}

func (l *liar) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.asked++
	if r.Method == http.MethodPost {
		l.fetched++
	}
	lie := l.lie
	l.mu.Unlock()
	if lie != nil {
		lie(out, r)
		return
	}
	l.true.ServeHTTP(out, r)
}

func (l *liar) turn(lie http.HandlerFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lie, l.asked, l.fetched = lie, 0, 0
}

// refs answers which commit the branch has.
func refs(out io.Writer, head string, more ...string) {
	_, _ = io.WriteString(out,
		pkt("# service=git-upload-pack\n")+"0000"+pkt(head+" HEAD\x00multi_ack shallow ofs-delta symref=HEAD:refs/heads/main agent=liar\n"))
	for _, m := range more {
		_, _ = io.WriteString(out, pkt(m+"\n"))
	}
	_, _ = io.WriteString(out, pkt(head+" refs/heads/main\n")+"0000")
}

// serves a pack as a commit.
func serves(head string, pack []byte) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			out.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			refs(out, head)
			return
		}
		out.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = io.WriteString(out, pkt("shallow "+head)+"0000"+pkt("NAK\n"))
		_, _ = out.Write(pack)
	}
}

// made serves what is made, with as many objects as there are.
func made(head string, p *packed) http.HandlerFunc { return serves(head, p.bytes(p.count)) }

// forever says something without end.
func forever(begin, part string) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		_, err := io.WriteString(out, begin)
		for err == nil && r.Context().Err() == nil {
			_, err = io.WriteString(out, part)
		}
	}
}

// slowly says a byte now and then.
func slowly(begin string) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(out, begin)
		for r.Context().Err() == nil {
			out.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Millisecond):
				_, _ = io.WriteString(out, "0")
			}
		}
	}
}

func text(status int, body string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(status)
		_, _ = io.WriteString(out, body)
	}
}

const someHead = "1234567890123456789012345678901234567890"

// TestLiar: a git server that answers what none does ends nothing, takes nothing away, and costs no
// more than the limits say; what can be taken of a commit is, and when the server is well again,
// what there is arrives.
func TestLiar(t *testing.T) {
	blob := []byte(entry("c", "c"))
	plain := func(p *packed) []byte { return leaf("100644", "c.yaml", p.add(blobType, blob)) }
	head, good := of(plain)
	whole := good.bytes(good.count)
	// nested is a folder in a folder, so many times, each times over.
	nested := func(deep, times int) http.HandlerFunc {
		return made(of(func(p *packed) []byte {
			tree := leaf("100644", "x.txt", p.add(blobType, []byte("x")))
			for range deep {
				below := p.add(treeType, tree)
				tree = nil
				for i := range times {
					tree = append(tree, leaf("40000", fmt.Sprintf("%03d", i), below)...)
				}
			}
			return tree
		}))
	}
	zeros := make([]byte, 16<<20)
	unzipped := func(said uint64) http.HandlerFunc {
		p := &packed{}
		p.head(blobType, said)
		p.body.Write(deflate(zeros))
		return serves(p.commit(p.add(treeType, leaf("100644", "c.yaml", hash(blobType, zeros)))), p.bytes(3))
	}
	delta := func(base []byte, size uint64) http.HandlerFunc {
		p := &packed{}
		of := p.add(blobType, make([]byte, 60_000))
		if base == nil {
			base = of
		}
		d := binary.AppendUvarint(binary.AppendUvarint(nil, 60_000), size)
		for made := uint64(0); made < size && len(d) < 1<<20; made += 60_000 {
			d = append(d, 0x80|0x10|0x20, byte(60_000&255), byte(60_000>>8))
		}
		p.head(refDelta, uint64(len(d)))
		p.body.Write(base)
		p.body.Write(deflate(d))
		return serves(p.commit(p.add(treeType, leaf("100644", "c.yaml", of))), p.bytes(4))
	}
	odd := made(of(func(p *packed) (tree []byte) {
		b := p.add(blobType, blob)
		for _, name := range []string{"a\nb.yaml", "\x1b[2J.yaml", "\xff.yaml"} {
			tree = append(tree, leaf("100644", name, b)...)
		}
		tree = append(tree, leaf("40000", "..", p.add(treeType, leaf("100644", "up.yaml", b)))...)
		tree = append(tree, leaf("120000", "link.yaml", p.add(blobType, []byte("/etc/passwd")))...)
		tree = append(tree, leaf("160000", "module.yaml", hash(commitType, nil))...)
		tree = append(tree, leaf("100644", "large.yaml", p.add(blobType, bytes.Repeat([]byte("# large\n"), 20_000)))...)
		return append(tree, leaf("100644", "z.yaml", b)...)
	}))
	cut := func(eighths int) http.HandlerFunc { return serves(head, whole[:len(whole)*eighths/8]) }
	spoilt := bytes.Clone(whole)
	spoilt[len(spoilt)-1] ^= 1
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(zeros)
	_ = z.Close()
	for name, tt := range map[string]struct {
		lie  http.HandlerFunc
		says string
		// rows: what is served while it lies; none: what was there before.
		rows []string
	}{
		"it tells the truth":    {made(head, good), "", []string{"c c.yaml"}},
		"nothing":               {text(200, ""), "can't be read", nil},
		"garbage":               {text(200, "<html>null</html>"), "can't be read", nil},
		"null bytes":            {text(200, strings.Repeat("\x00", 1000)), "can't be read", nil},
		"lengths that are none": {text(200, "001e# service=git-upload-pack\n0000fff0x"), "can't be read", nil},
		"an error":              {text(500, strings.Repeat("no ", 100_000)), "can't be read", nil},
		"references without end": {
			forever(pkt("# service=git-upload-pack\n")+"0000"+pkt(someHead+" HEAD\x00shallow\n"), pkt(someHead+" refs/heads/"+strings.Repeat("x", 900)+"\n")),
			"the server says more than limits.bytes", nil,
		},
		"no branch": {func(out http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(out, pkt("# service=git-upload-pack\n")+"0000"+pkt(someHead+" refs/heads/../../x\x00shallow\n")+"0000")
		}, "there is no branch", nil},
		"a branch of nothing":       {serves(strings.Repeat("0", 40), whole), "can't be read", nil},
		"a branch of a file":        {serves(hex.EncodeToString(hash(blobType, blob)), whole), "can't be read", nil},
		"a branch of another":       {serves(someHead, whole), "can't be read", nil},
		"a pack of nothing":         {cut(0), "can't be read", nil},
		"half a pack":               {cut(4), "can't be read", nil},
		"most of a pack":            {cut(7), "can't be read", nil},
		"a spoilt pack":             {serves(head, spoilt), "can't be read", nil},
		"objects without end":       {serves(head, good.bytes(1<<32-1)), "objects, which is more than", nil},
		"an object too large":       {unzipped(16 << 20), "limits.bytes", nil},
		"one that says it is small": {unzipped(16), "can't be read", nil},
		"one that says it is huge":  {unzipped(1 << 50), "limits.bytes", nil},
		"a small one that grows":    {delta(nil, 1<<40), "limits.bytes", nil},
		"a delta of nothing":        {delta(bytes.Repeat([]byte{7}, 20), 60_000), "can't be read", nil},
		"a pack without end": {func(out http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				refs(out, head)
				return
			}
			forever(pkt("shallow "+head)+"0000"+pkt("NAK\n")+"PACK\x00\x00\x00\x02\x00\x00\x00\x09", strings.Repeat("\x00", 4096))(out, r)
		}, "limits.bytes", nil},
		"folders by the billion":   {nested(12, 12), "more than 1000000 files and folders", nil},
		"folders, deep":            {nested(3000, 1), "more than 200 deep", nil},
		"a folder that is missing": {made(of(func(*packed) []byte { return leaf("40000", "a", bytes.Repeat([]byte{9}, 20)) })), "can't be read", nil},
		"files by the thousand": {made(of(func(p *packed) (tree []byte) {
			b := p.add(blobType, blob)
			for i := range 9000 {
				tree = append(tree, leaf("100644", fmt.Sprintf("%04d.yaml", i), b)...)
			}
			return tree
		})), "more files than limits.files, 10", nil},
		"odd names": {odd, "its name is no UTF-8", []string{"c z.yaml"}},
		"a file that is deep": {made(of(func(p *packed) []byte {
			return append(leaf("100644", "c.yaml", p.add(blobType, blob)),
				leaf("100644", "d.yaml", p.add(blobType, []byte(strings.Repeat(`{"a":`, 20_000))))...)
		})), "git:d.yaml", []string{"c c.yaml"}},
		"one that is null": {made(of(func(p *packed) []byte {
			return append(leaf("100644", "c.yaml", p.add(blobType, blob)),
				leaf("100644", "d.yaml", p.add(blobType, []byte("kind: null\nmetadata: 7\nspec: []\n")))...)
		})), "git:d.yaml", []string{"c c.yaml"}},
		"a bomb": {func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Encoding", "gzip")
			_, _ = out.Write(zipped.Bytes())
		}, "can't be read", nil},
		"half way":     {func(out http.ResponseWriter, r *http.Request) { out.(http.Flusher).Flush(); <-r.Context().Done() }, "deadline exceeded", nil},
		"drop by drop": {slowly(pkt("# service=git-upload-pack\n")), "can't be read", nil},
		"it hangs up":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "can't be read", nil},
		"a machine's secrets": {func(out http.ResponseWriter, r *http.Request) {
			http.Redirect(out, r, "http://169.254.169.254"+r.URL.RequestURI(), http.StatusFound)
		}, "is a link-local address", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWork(t)
			w.commit(map[string]string{"a.yaml": entry("a", "a"), "b.yaml": entry("b", "b")})
			l := &liar{true: backend(t, filepath.Dir(w.dir))}
			s := httptest.NewServer(l)
			t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
			out := runFor(t, 3*time.Second,
				map[string]any{"repository": s.URL + "/repository", "limits": map[string]any{"bytes": 1 << 20, "files": 10, "fileBytes": 100_000}})
			both := func() []string { return []string{"a a.yaml", "b b.yaml"} }
			out.wants(t, "", both()...)
			l.turn(tt.lie)
			rows := tt.rows
			if rows == nil {
				rows = both()
				for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
					l.mu.Lock()
					n := l.asked
					l.mu.Unlock()
					if n >= 2 {
						break
					}
					if time.Now().After(end) {
						t.Fatal("it isn't asked")
					}
				}
			}
			out.wants(t, tt.says, rows...)
			if log := out.log(); strings.ContainsAny(log, "\x00\x1b") || len(log) > 100_000 {
				t.Errorf("the log has %d bytes: %q", len(log), log[:min(len(log), 1000)])
			}
			l.turn(nil)
			w.commit(map[string]string{"a.yaml": "", "d.yaml": entry("d", "d")})
			out.wants(t, "", "b b.yaml", "d d.yaml")
			if n := strings.Count(out.log(), "a commit is read"); tt.rows == nil && n != 2 {
				t.Errorf("%d commits were read, and two were good:\n%s", n, out.log())
			}
		})
	}
}

// TestLiarIsToldNothing: a password goes to the repository alone, and stands in no text, whatever
// the server does with it.
func TestLiarIsToldNothing(t *testing.T) {
	const password = "p/a+ss wörd"
	elsewhere := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("elsewhere is told %q", r.Header.Get("Authorization"))
		}
		http.Error(out, "no", http.StatusForbidden)
	}))
	t.Cleanup(elsewhere.Close)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, lie := range map[string]http.HandlerFunc{
		"leads elsewhere": func(out http.ResponseWriter, r *http.Request) {
			http.Redirect(out, r, elsewhere.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		},
		"repeats it": func(out http.ResponseWriter, r *http.Request) {
			http.Error(out, r.Header.Get("Authorization")+" "+password, http.StatusInternalServerError)
		},
		"as a reference": func(out http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(out, pkt("ERR "+r.Header.Get("Authorization")+" "+password+"\n"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(lie)
			t.Cleanup(s.Close)
			out := run(t, map[string]any{"repository": s.URL + "/repository", "username": "robot", "passwordFile": file})
			out.wants(t, "can't be read")
			_, faults, _ := out.says(t)
			for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte("robot:" + password))} {
				if strings.Contains(out.log()+faults, secret) {
					t.Errorf("it is told: %s %s", out.log(), faults)
				}
			}
		})
	}
}
