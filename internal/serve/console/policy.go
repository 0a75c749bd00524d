package console

import (
	"net/http"
	"strings"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/ask"
)

// shownPolicy is the policy page of an agent.
type shownPolicy struct {
	Agent, Version string
	Held           *ask.Holding
	Usage          usage
	Override       *ask.Override
	Text           string // in the editor
	Edited         bool   // Text is not what is saved
	Long           bool   // Text is more than a page has room for
	Problem        string // why Text cannot be an override
	Change         *ask.Draft
	Forecast       *ask.Forecast
	Hint           *shownWhy // the denial that led here
	Saved          bool
	Suggested      string // where the editor begins with what was used
	MayTry         bool
	MaySave        bool
}

func (c *console) policyPage(r *http.Request, caller *service.Caller) (*view, error) {
	p, b, err := c.policy(r, caller)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	// and not another since, nor by a link that says so
	p.Saved = p.Override.Text != "" && q.Get("saved") == p.Override.Digest
	if run := q.Get("run"); whole(run, lowerHex) && len(run) == 36 {
		seq, err := cursor(q.Get("record"))
		if err == nil && seq > 0 {
			if p.Hint, err = c.why(r, caller, run, seq); err != nil {
				p.Hint = nil // what led here is not there any more
			}
		}
	}
	if q.Get("from") == "used" {
		made, err := c.Host.Suggest(r.Context(), caller, b.Name)
		if err != nil {
			if p.Problem, err = unanswered(err); err != nil {
				return nil, err
			}
		} else {
			p.Text, p.Edited = made.Policy, true
		}
	}
	return policyView(p), nil
}

// editorRoom is how much HTML the text of an override may be on a page.
const editorRoom = 44 << 10

func policyView(p *shownPolicy) *view {
	if p.Long = weight(p.Text) > editorRoom; p.Long {
		p.Text = ""
	}
	return &view{Page: "policy", Title: "Policy of " + p.Agent, Nav: "agents", Data: p}
}

// policy reads what the page shows before anything is edited.
func (c *console) policy(r *http.Request, caller *service.Caller) (*shownPolicy, service.Agent, error) {
	b, err := c.bundle(r.Context(), caller, r.PathValue("name"))
	if err != nil {
		return nil, b, err
	}
	p := &shownPolicy{
		Agent: b.Name, Version: b.Version, Suggested: policyLink(b.Name) + "?from=used#editor",
		MayTry: caller.Can(service.Operate), MaySave: maySave(caller),
	}
	if p.Held, err = c.Host.Holding(r.Context(), caller, b.Name); err != nil {
		return nil, b, err
	}
	if p.Override, err = c.Host.Override(r.Context(), caller, b.Name); err != nil {
		return nil, b, err
	}
	p.Text = p.Override.Text
	log, err := c.Host.Log(r.Context(), caller)
	if err != nil {
		return nil, b, err
	}
	p.Usage, err = used(r.Context(), log, b.Name, p.Held.Effective)
	return p, b, err
}

// maySave reports whether a caller may save overrides at all. They hold for
// every tenant: a token of one that is not the host's own may not write them.
func maySave(c *service.Caller) bool {
	return c.Can(service.Operate) && (ofHost(c) || c.Tenant == ownTenant)
}

// ownTenant is the tenant of the host's own operator.
const ownTenant = "default"

// editPolicy says what an edit would change, or saves it.
func (c *console) editPolicy(r *http.Request, caller *service.Caller) (*view, error) {
	if err := r.ParseForm(); err != nil {
		return nil, &badRequest{"the form is too large: an override has 64 KiB at most"}
	}
	for _, values := range r.PostForm {
		if len(values) > 1 {
			return nil, &badRequest{"the form says something twice; load the page again"}
		}
	}
	text := strings.ReplaceAll(r.PostForm.Get("text"), "\r\n", "\n")
	save := r.PostForm.Get("do") == "save"
	if save && !maySave(caller) {
		return nil, service.ErrForbidden
	}
	p, b, err := c.policy(r, caller)
	if err != nil {
		return nil, err
	}
	t := ask.Trial{Text: []byte(text), Save: save, Narrow: !ofHost(caller)}
	if save {
		if t.Was = r.PostForm.Get("was"); t.Was == "" || !whole(t.Was, nameLetter) {
			return nil, &badRequest{"the form does not say which override was edited; load the page again"}
		}
	}
	if weight(text) > editorRoom {
		return nil, &badRequest{"the text is longer than a page has room for; save it as a file, and give that to rlp caps " +
			"override " + b.Name + " FILE"}
	}
	p.Text, p.Edited = text, true
	o, err := c.Host.TryOverride(r.Context(), caller, b.Name, t)
	if err != nil {
		if p.Problem, err = unanswered(err); err != nil {
			return nil, err
		}
		v := policyView(p)
		v.Status = http.StatusBadRequest
		return v, nil
	}
	if save {
		c.Log.Info("override saved", "agent", b.Name, "tenant", caller.Tenant, "caller", caller.Name)
		return &view{Goto: policyLink(b.Name) + "?saved=" + o.Change.Digest}, nil
	}
	p.Change = o.Change
	if p.Forecast, err = c.Host.WhatIf(r.Context(), caller, b.Name, []byte(text)); err != nil {
		if p.Problem, err = unanswered(err); err != nil {
			return nil, err
		}
	}
	return policyView(p), nil
}
