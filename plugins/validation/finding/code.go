package finding

// Code is what there is to know about a code. Each package that finds something has a table of its
// codes.
type Code struct {
	// ID is such as COX1101.
	ID string
	// Title is a few words without a full stop.
	Title string
	// Explanation says in plain sentences what the finding means, why it matters and what to do.
	Explanation string
	// Wrong is a text for which the code is found, and Right the same repaired, for which nothing
	// is found.
	Wrong, Right Example
}

// Example is what a user might have: YAML documents, and the mesh's settings where they matter.
type Example struct {
	// Documents is a YAML stream of resources.
	Documents string
	// Remote is such a stream, of another cluster.
	Remote string
	// Mesh and Networks are a MeshConfig and a MeshNetworks.
	Mesh, Networks string
}

// YAML returns an example of documents alone.
func YAML(documents string) Example { return Example{Documents: documents} }
