package caps

// A Vote is what one layer says about a request. Pos is the line that decides:
// of a refusal the deny entry or the bound, of the base's consent the entry
// that grants it; no place where nothing was written.
type Vote struct {
	Layer string `json:"layer"`
	Allow bool   `json:"allow"`
	Pos   Pos    `json:"source"`
}

// An Explanation says why a request is allowed or denied: every vote, not only
// the first refusal.
type Explanation struct {
	Request  Request  `json:"-"`
	Asked    string   `json:"capability"`
	Decision Decision `json:"-"`
	Allow    bool     `json:"allow"`
	Code     Code     `json:"reason"`
	// Scope is the deepest scope that holds the request and that any policy
	// names or leads to.
	Scope string `json:"scope"`
	Votes []Vote `json:"votes"`
}

// Explain decides r as [Set.Check] does and says why.
func (s Set) Explain(r Request) Explanation {
	d := s.Check(r)
	e := Explanation{Request: r, Asked: r.String(), Decision: d, Allow: d.Allow, Code: d.Code}
	if d.Scope < 0 {
		return e
	}
	st := s.state().rebuilt()
	id := st.find(r)
	e.Scope = Set{st}.Scope(r.Family, id)
	e.Votes = append(e.Votes, st.baseVote(r, id))
	for i := range st.steps {
		v := Vote{Layer: st.steps[i].layer.Name, Allow: true}
		if b := st.steps[i].votes[r.Family]; b != nil && b[r.Mode] != nil {
			v.Allow = b[r.Mode].Test(uint(id))
		}
		if !v.Allow {
			v.Pos = st.sourceOf(st.steps[i].layer, r, id)
		}
		e.Votes = append(e.Votes, v)
	}
	return e
}

// rebuilt is st with all in its universe that any layer names, so that each
// layer says what it would say of a request that the base refuses.
func (st *state) rebuilt() *state {
	whole := newState()
	whole.whole, whole.limits, whole.entries = true, st.limits, st.entries
	if st.closed != nil {
		return st
	}
	_ = whole.fill(st.entries) // as it was when the base was made
	for i := range st.steps {
		next, _, err := Set{whole}.Narrow(st.steps[i].layer)
		if err != nil {
			return st
		}
		whole = next.in
	}
	return whole
}

// sourceOf is the place in l that refuses r, whose deepest node is id.
func (st *state) sourceOf(l *Layer, r Request, id int32) Pos {
	ids, _, _ := st.ids(l) // l was applied: it can be
	if p := st.place(l, ids)[r.Family]; p != nil {
		return p.source(id, r.Mode)
	}
	return Pos{}
}

// baseVote names the deepest entry of the base that holds the node.
func (st *state) baseVote(r Request, id int32) Vote {
	v := Vote{Layer: "base", Allow: st.base[r.Family][r.Mode].Test(uint(id))}
	t := st.trees[r.Family]
	for up := id; up >= 0; up = t.nodes[up].parent {
		for _, e := range st.entries {
			if e.Grant.Family != r.Family {
				continue
			}
			for _, p := range t.grantNodes(e.Grant, t.exact(e.Grant.Scope)) {
				if p.modes.Has(r.Mode) && p.id == up {
					v.Pos = e.Pos
					return v
				}
			}
		}
	}
	return v
}
