package finding

import (
	"io/fs"
	"path"
	"strings"

	"golang.org/x/tools/txtar"
)

// ReadCodes reads a folder with a file for each code, ID.txtar: the title in the first line, the
// explanation below, and the examples as files of the archive: wrong.yaml and right.yaml or, for
// the mesh's settings, wrong-mesh.yaml, right-mesh.yaml, wrong-networks.yaml and
// right-networks.yaml. It returns them sorted by id.
func ReadCodes(files fs.FS, folder string) []Code {
	names, err := fs.Glob(files, path.Join(folder, "*.txtar"))
	if err != nil {
		return nil
	}
	list := make([]Code, 0, len(names))
	for _, name := range names {
		if text, err := fs.ReadFile(files, name); err == nil {
			list = append(list, parseCode(strings.TrimSuffix(path.Base(name), ".txtar"), text))
		}
	}
	return list
}

func parseCode(id string, text []byte) Code {
	archive := txtar.Parse(text)
	title, explanation, _ := strings.Cut(strings.TrimSpace(string(archive.Comment)), "\n")
	code := Code{ID: id, Title: title, Explanation: strings.TrimSpace(explanation)}
	for _, f := range archive.Files {
		into := &code.Right
		if strings.HasPrefix(f.Name, "wrong") {
			into = &code.Wrong
		}
		switch {
		case strings.HasSuffix(f.Name, "-mesh.yaml"):
			into.Mesh = string(f.Data)
		case strings.HasSuffix(f.Name, "-remote.yaml"):
			into.Remote = string(f.Data)
		case strings.HasSuffix(f.Name, "-networks.yaml"):
			into.Networks = string(f.Data)
		default:
			into.Documents = string(f.Data)
		}
	}
	return code
}
