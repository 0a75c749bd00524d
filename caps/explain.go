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
	st, d := s.state(), s.Check(r)
	e := Explanation{Request: r, Asked: r.String(), Decision: d, Allow: d.Allow, Code: d.Code}
	if d.Scope < 0 {
		return e
	}
	e.Scope = s.Scope(r.Family, d.Scope)
	e.Votes = append(e.Votes, st.baseVote(r, d.Scope))
	for i := range st.steps {
		v := Vote{Layer: st.steps[i].layer.Name, Allow: true}
		if b := st.steps[i].votes[r.Family]; b != nil && b[r.Mode] != nil {
			v.Allow = b[r.Mode].Test(uint(d.Scope))
		}
		if p := st.place(r.Family, st.steps[i].layer); p != nil && !v.Allow {
			v.Pos, _ = p.source(d.Scope, r.Mode)
		}
		e.Votes = append(e.Votes, v)
	}
	return e
}

// baseVote names the deepest entry of the base that holds the node.
func (st *state) baseVote(r Request, id int32) Vote {
	v := Vote{Layer: "base", Allow: st.base[r.Family][r.Mode].Test(uint(id))}
	t := st.trees[r.Family]
	for up := id; up >= 0 && v.Allow; up = t.nodes[up].parent {
		if !t.nodes[up].base.Has(r.Mode) {
			continue
		}
		for _, e := range st.entries {
			if e.Grant.Family != r.Family || !e.Grant.Modes.Has(r.Mode) {
				continue
			}
			for _, p := range places(e.Grant, true) {
				if p.modes.Has(r.Mode) && p.scope == t.nodes[up].name {
					v.Pos = e.Pos
					return v
				}
			}
		}
	}
	return v
}
