package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// Refusal says why the paths of a policy refuse every launch that is strict with
// paths and keeps to plan, and what to write instead; "" if they do not.
func (p *Paths) Refusal(plan Plan) string {
	if why := p.redirected(); why != "" {
		return why
	}
	return p.unresolved(plan)
}

// unresolved says why paths that are left in the plan and do not exist refuse
// the launch, each with the place that named it; "" if nothing does. What a
// layer took away altogether need not exist.
func (p *Paths) unresolved(plan Plan) string {
	var parts []string
	for _, scope := range left(plan, caps.FS) {
		if pos, missing := p.Missing[scope]; missing {
			parts = append(parts, describe(scope, pos.String()))
		}
	}
	return p.strictly(parts)
}

// redirected says why the paths of files in the policy that links lead elsewhere
// refuse the launch; "" if nothing does. An agent that may write a folder can put
// a link there, which looks like the operator's own.
func (p *Paths) redirected() string {
	var parts []string
	for _, r := range p.Redirected() {
		parts = append(parts, r.String())
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + `; or take links as they are by path_profile = "relaxed" under [security]`
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
func (r Redirect) String() string {
	return fmt.Sprintf("%s leads through the link %s to %s: write %s", describe(r.Written, r.Pos.String()), r.Link, r.Path,
		r.Remedy())
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

func describe(path, place string) string {
	if place == "" {
		return path
	}
	return fmt.Sprintf("%s (%s)", path, place)
}

// absence is what is said of a granted path that is not there. Of one that was
// taken as it is written nobody is told why: there may be a link, or nothing.
func (p *Paths) absence() string {
	if p.AsWritten {
		return "not granted as written: "
	}
	return "granted and not there: "
}

func (p *Paths) strictly(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	if p.AsWritten {
		return p.absence() + strings.Join(paths, ", ") +
			"; name files and folders by their own paths, without links, or ask the operator, whose log says more"
	}
	first, _, _ := strings.Cut(paths[0], " (")
	return fmt.Sprintf(`%s%s; make it, take it out (--deny fs:*:%s), or leave it to the run by path_profile = "relaxed" under [security]`,
		p.absence(), strings.Join(paths, ", "), first)
}

// A goneError says that a granted path went away while the launch was under way.
type goneError struct{ why string }

func (e *goneError) Error() string { return e.why }

// absent warns of granted paths that are not there, and refuses them unless
// they are to be kept.
func (r *run) absent(paths []string) error {
	var gone []string
	granted := left(r.plan, caps.FS)
	for _, p := range paths {
		if !slices.Contains(granted, p) {
			continue
		}
		if r.spec.Paths.AsWritten {
			r.warn("the fs grant %s is not to be had as written", p)
		} else {
			r.warn("the fs grant %s does not exist", p)
		}
		gone = append(gone, describe(p, r.spec.Paths.Missing[p].String()))
	}
	if r.spec.Relaxed || len(gone) == 0 {
		return nil
	}
	return &goneError{r.spec.Paths.strictly(gone)}
}
