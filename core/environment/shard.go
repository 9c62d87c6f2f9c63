package environment

import pb "github.com/coxswain-mesh/coxswain/sdk/proto"

// Tables of rows by key: what a shard consists of.
type Tables map[string]map[string]*pb.Row

// Put makes a row part of the tables.
func (t Tables) Put(table string, r *pb.Row) {
	if t[table] == nil {
		t[table] = map[string]*pb.Row{}
	}
	t[table][r.Key] = r
}

// Len is the number of rows.
func (t Tables) Len() (n int) {
	for _, rows := range t {
		n += len(rows)
	}
	return n
}
