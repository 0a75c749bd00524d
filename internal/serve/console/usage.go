package console

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/runs"
)

// usageRecords is how many of an agent's last records are looked at.
const usageRecords = 4000

// usage is what an agent was granted against what it used, in its last records.
type usage struct {
	Runs    int
	Records int
	Grants  []usedGrant
	Denied  []deniedOften
	More    int // that are not listed
}

type usedGrant struct {
	Grant string
	Calls int
	Runs  int
	Now   bool // it is left to a launch of now, without placeholders
}

type deniedOften struct {
	Cap, Target, Reason, Layer string
	Times                      int
	Run                        string
	Seq                        uint64
	Why                        string
}

const mostDenied = 25

// used counts the allowed calls of an agent by the grant that held them.
func used(ctx context.Context, log service.Log, agent string, now []string) (usage, error) {
	u := usage{}
	grants := map[string]*usedGrant{}
	for _, g := range now {
		grants[g] = &usedGrant{Grant: g, Now: true}
	}
	denied := map[string]*deniedOften{}
	of, seen := map[string]*timeline{}, map[string]bool{}
	for r, err := range log.Audit(ctx, kb.Filter{Agent: agent, Limit: usageRecords}) {
		if err != nil {
			return u, err
		}
		u.Records++
		id := r.Head.RunID
		t := of[id]
		if t == nil {
			t = &timeline{}
			of[id] = t
			first := &r
			if r.RunSeq > 1 { // it began before the records that are looked at
				if first, err = one(ctx, log, kb.Filter{Run: id}); err != nil {
					return u, err
				}
			}
			t.began(first, grants)
		}
		switch {
		case r.Denied():
			d := r.Decision
			key := d.Cap + "\x00" + d.Target + "\x00" + d.Layer
			if denied[key] == nil {
				denied[key] = &deniedOften{Cap: d.Cap, Target: d.Target, Reason: d.Reason, Layer: voter(d)}
			}
			often := denied[key]
			often.Times++
			often.Run, often.Seq = id, r.Seq
			often.Why = whyLink(id, r.Seq)
		case r.Allowed():
			by := runs.Holder(t.grants, r.Decision.Cap, r.Decision.Target)
			g := grants[by]
			if g == nil {
				continue
			}
			g.Calls++
			if key := id + by; !seen[key] {
				seen[key] = true
				g.Runs++
			}
		}
	}
	u.Runs = len(of)
	u.list(grants, denied)
	return u, nil
}

// began takes in what a run held from its beginning on.
func (t *timeline) began(r *audit.Record, grants map[string]*usedGrant) {
	if r == nil || r.Event == nil || r.Event.Kind != audit.KindRunStart {
		return
	}
	t.grants = runs.Grants(r.Event.Effective)
	for _, g := range r.Event.Effective {
		if grants[g] == nil {
			grants[g] = &usedGrant{Grant: g}
		}
	}
}

func (u *usage) list(grants map[string]*usedGrant, denied map[string]*deniedOften) {
	for _, g := range grants {
		u.Grants = append(u.Grants, *g)
	}
	slices.SortFunc(u.Grants, func(a, b usedGrant) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Grant, b.Grant))
	})
	if n := len(u.Grants); n > mostGrants {
		u.Grants, u.More = u.Grants[:mostGrants], n-mostGrants
	}
	for _, d := range denied {
		u.Denied = append(u.Denied, *d)
	}
	slices.SortFunc(u.Denied, func(a, b deniedOften) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(b.Seq, a.Seq))
	})
	u.Denied = u.Denied[:min(len(u.Denied), mostDenied)]
}
