package ask

import (
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher/run"
)

// ignored are the entries of layers that name what r asks for and add nothing, each with
// its line: an operator who writes one may take it for a grant.
func ignored(p run.Plan, r caps.Request) (list []string) {
	for _, c := range p.Ignored() {
		alone, err := plan(run.Policy{Base: []caps.Entry{{Grant: c.Grant}}})
		if err == nil && alone.Effective.Check(r).Allow {
			list = append(list, c.Layer+" "+c.Source.String())
		}
	}
	return list
}
