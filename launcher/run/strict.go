package run

import (
	"cmp"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher/places"
)

// Refusal says why the paths of a policy refuse every launch that is strict with
// paths and keeps to plan, and what to write instead; "" if they do not.
func (p *Paths) Refusal(plan Plan) string { return p.refusal(plan).String() }

func (p *Paths) refusal(plan Plan) places.Text {
	if p.Redirected() != nil {
		return p.redirected()
	}
	return p.unresolved(plan)
}

// unresolved says why paths that are left in the plan and do not exist refuse
// the launch, each with the place that named it; empty if nothing does. What a
// layer took away altogether need not exist.
func (p *Paths) unresolved(plan Plan) places.Text {
	var parts []string
	for _, scope := range left(plan, caps.FS) {
		if _, missing := p.Missing[scope]; missing {
			parts = append(parts, scope)
		}
	}
	return p.strictly(parts)
}

// redirected says why the paths of files in the policy that links lead elsewhere
// refuse the launch. An agent that may write a folder can put a link there, which looks
// like the operator's own.
func (p *Paths) redirected() places.Text {
	var parts []places.Text
	for _, r := range p.Redirected() {
		parts = append(parts, r.text())
	}
	return places.Textf(`%s; or take links as they are by path_profile = "relaxed" under [security]`, places.Join(parts, "; "))
}

// Redirected are the paths of files that a link leads elsewhere which is no entry
// of the root folder.
func (p *Paths) Redirected() []Redirect {
	return slices.DeleteFunc(slices.Clone(p.Redirects), func(r Redirect) bool {
		return r.Family != caps.FS ||
			r.Link == ""
	})
}

// String says where r leads, and what to write.
func (r Redirect) String() string { return r.text().String() }

func (r Redirect) text() places.Text {
	return places.Textf("%s leads through the link %s to %s: write %s", described(places.Path(r.Written), r.Pos),
		places.Path(r.Link), places.Path(r.Path), places.Path(r.Remedy()))
}

// Remedy is what to write where r was written.
func (r Redirect) Remedy() string { return cmp.Or(r.Instead, r.Path) }

// left are the scopes of a family that are left in the plan.
func left(plan Plan, f caps.Family) []string {
	var list []string
	for _, g := range plan.Effective.Grants() {
		if g.Family == f {
			list = append(list, g.Scope)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// described is a path or a layer, with the place that names it.
func described(what any, place caps.Pos) places.Text {
	if place.String() == "" {
		return places.Textf("%s", what)
	}
	return places.Textf("%s (%s)", what, place)
}

// absence is what is said of a granted path that is not there. Of one that was
// taken as it is written nobody is told why: there may be a link, or nothing.
func (p *Paths) absence() string {
	if p.AsWritten {
		return "not granted as written: "
	}
	return "granted and not there: "
}

func (p *Paths) strictly(paths []string) places.Text {
	if len(paths) == 0 {
		return places.Text{}
	}
	var parts []places.Text
	for _, path := range paths {
		parts = append(parts, described(places.Path(path), p.Missing[path]))
	}
	all := places.Join(parts, ", ")
	if p.AsWritten {
		return places.Textf("%s%s; name files and folders by their own paths, without links, or ask the operator, whose log "+
			"says more", p.absence(), all)
	}
	return places.Textf(`%s%s; make it, take it out (--deny fs:*:%s), or leave it to the run by path_profile = "relaxed" `+
		`under [security]`, p.absence(), all, places.Path(paths[0]))
}
