package environment

import pb "github.com/coxswain-mesh/coxswain/sdk/proto"

// coming returns what a shard has of a key once all that waits to be committed is.
func (p *Pending) coming(s *Shard, n Name) *pb.Row {
	if r, waits := p.of(s, n); waits {
		return r
	}
	return p.tables.own(s, n)
}

// admit notes what a shard says of a key, or has it wait where its namespace is full.
func (p *Pending) admit(in *pool, s *Shard, n Name, r *pb.Row) {
	now := p.coming(s, n)
	if in.members == nil {
		if cost := Cost(n.Table, r) - Cost(n.Table, now); cost <= 0 || in.used+cost <= in.most {
			in.used += cost
			p.set(s, n, r)
			p.spaces.tidy(in)
			return
		}
		p.enlist(in)
	}
	in.recall(s, n)
	m := in.members[seat{s, n}]
	if m != nil && r != nil {
		in.date(m, r.Created)
	}
	switch {
	case m == nil && r == nil:
	case m == nil:
		m = in.enlist(s, n, r.Created, !p.begun())
		in.refuse(m, r)
	case r == nil, Equal(now, r), now != nil && Cost(n.Table, r) <= m.cost:
		in.serve(m)
		in.let(m, r)
		p.set(s, n, r)
		in.leave(m)
	case m.waits != nil && Equal(m.waits, r):
		m.waits.Source = r.Source
	default:
		in.refuse(m, r)
	}
	p.settle(in)
}

// settle lets in what there is room for, oldest first, and has the youngest make room for older
// ones.
func (p *Pending) settle(in *pool) {
	for {
		m, out := in.next()
		switch {
		case m != nil:
			r := in.serve(m)
			in.let(m, r)
			p.set(m.shard, m.Name, r)
		case out != nil:
			r := p.coming(out.shard, out.Name)
			if out.waits != nil {
				r = in.serve(out)
			}
			in.let(out, nil)
			p.set(out.shard, out.Name, nil)
			in.refuse(out, r)
		default:
			in.trim()
			p.said(in)
			return
		}
	}
}

// said notes that something was refused or let in, if it was, and has the row served that stands
// for policies that are refused, as long as any is.
func (p *Pending) said(in *pool) {
	if in.told != in.changes {
		in.told = in.changes
		p.spaces.changes++
		if in.policies && p.spaces.bounds.Instead != nil {
			table, row := p.spaces.bounds.Instead(in.namespace)
			n := Name{table, row.Key}
			if row.Shard = Own; !in.crowded() {
				row = nil
			}
			p.set(p.spaces.own, n, row)
		}
	}
	p.spaces.tidy(in)
}

// enlist begins to keep the members of a namespace. It costs a look at all rows.
func (p *Pending) enlist(in *pool) {
	in.begin()
	add := func(s *Shard, n Name, r *pb.Row) {
		if r != nil && p.spaces.pool(s, n) == in {
			in.used -= Cost(n.Table, r)
			in.let(in.enlist(s, n, r.Created, true), r)
		}
	}
	for name, t := range p.tables {
		for key, rows := range t.rows {
			n := Name{name, key}
			for _, o := range rows {
				if _, waits := p.of(o.shard, n); !waits {
					add(o.shard, n, o.row)
				}
			}
		}
	}
	for n, shards := range p.waits {
		for s, r := range shards {
			add(s, n, r)
		}
	}
}

// begun reports whether anything was committed: what came before was there at the start.
func (p *Pending) begun() bool { return p.committed.number > p.first }

// force has a row of a shard wait for the next commit, whatever there is of it, and whether there
// is room for it or not.
func (p *Pending) force(s *Shard, n Name, r *pb.Row) {
	in := p.spaces.pool(s, n)
	switch {
	case in == nil:
	case in.members == nil:
		in.used += Cost(n.Table, r) - Cost(n.Table, p.coming(s, n))
	default:
		m := in.members[seat{s, n}]
		if m == nil && r != nil {
			m = in.enlist(s, n, r.Created, true)
		}
		if m != nil {
			in.serve(m)
			in.let(m, r)
			in.leave(m)
		}
	}
	p.put(s, n, r)
}
