package run

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// A LowerLimit is a limit of a run that is lower than its bundle asks for. A bundle
// lifts no default: only who operates does.
type LowerLimit struct {
	Limit string   `json:"limit"`
	Asked int64    `json:"asked"`
	Given int64    `json:"given"`
	By    []string `json:"by"` // the layers that say less than was asked; none: the default holds
	Final bool     `json:"-"`  // one of them is not the operator's own: no file of theirs gives more
}

// LowerLimits are the limits that the bundle asks more of than given leaves.
func (p *Policy) LowerLimits(given caps.Limits) []LowerLimit {
	list := []LowerLimit{}
	for l := range caps.NumLimits {
		asked, asks := p.BaseLimits.Get(l)
		has, bound := given.Get(l)
		if !asks || !bound || has >= asked {
			continue
		}
		lower := LowerLimit{Limit: l.String(), Asked: asked, Given: has, By: []string{}}
		operators := p.Operators()
		for _, layer := range p.all() {
			if n, set := layer.Limits.Get(l); set && n < asked {
				lower.By = append(lower.By, layer.Name)
				lower.Final = lower.Final || layer.Name == CallerLayer || !slices.Contains(operators, layer)
			}
		}
		list = append(list, lower)
	}
	return list
}

// String says who gives less, and what to write instead.
func (l LowerLimit) String() string {
	by, where := "the default", "in its override"
	if len(l.By) > 0 {
		by, where = "by "+strings.Join(l.By, " and "), "there"
	}
	text := fmt.Sprintf("the bundle asks for %s = %d, and gets %d, %s", l.Limit, l.Asked, l.Given, by)
	if l.Final {
		return text
	}
	return fmt.Sprintf("%s; to give it, write %s = %d under [limits] %s", text, l.Limit, l.Asked, where)
}

// lower is what the message of an end says of a limit that the bundle asked more of.
func (p *Policy) lower(l caps.Limit, given caps.Limits) string {
	for _, low := range p.LowerLimits(given) {
		if low.Limit == l.String() {
			return "; " + low.String()
		}
	}
	return ""
}
