package console

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"runloop.dev/rlp/internal/service"
)

// shownPolicy is the policy page of an agent.
type shownPolicy struct {
	Agent, Version string
	Held           held
	Usage          usage
	Override       override
	Text           string // in the editor
	Edited         bool   // Text is not what is saved
	Long           bool   // Text is more than a page has room for
	Problem        string // why Text cannot be an override
	Change         *change
	Forecast       *forecast
	Hint           *shownWhy // the denial that led here
	Saved          bool
	Suggested      string // where the editor begins with what was used
	MayTry         bool
	MaySave        bool
}

// held is what rlp caps show prints.
type held struct {
	Base      []string         `json:"base"`
	Effective []string         `json:"effective"`
	Unset     []string         `json:"params_unset"`
	Limits    map[string]int64 `json:"limits"`
	Hidden    []string         `json:"hidden_tools"`
	Layers    []struct {
		Name string `json:"name"`
	} `json:"layers"`
}

// override is what rlp caps override prints.
type override struct {
	Path   string  `json:"path"`
	Text   string  `json:"text"`
	Digest string  `json:"digest"`
	Change *change `json:"change"`
}

type change struct {
	Digest   string   `json:"digest"`
	Narrower bool     `json:"narrower"`
	Taken    []string `json:"taken"`
	Given    []string `json:"given_back"`
	Unset    []string `json:"params_unset"`
	Limits   []string `json:"limits"`
	Notes    []string `json:"notes"`
	Saved    bool     `json:"saved"`
}

// forecast is what rlp caps whatif prints.
type forecast struct {
	Runs        int              `json:"runs"`
	RunsBlocked int              `json:"runs_blocked"`
	Decisions   map[string]int64 `json:"decisions"`
	Blocked     []block          `json:"blocked"`
	Depends     []block          `json:"depends"`
	NotTried    []string         `json:"not_tried"`
	Incomplete  int              `json:"runs_incomplete"`
}

type block struct {
	Cap    string `json:"cap"`
	Op     string `json:"op"`
	Target string `json:"target"`
	Count  int64  `json:"count"`
	Runs   int    `json:"runs"`
	Source string `json:"source"`
	Reason string `json:"reason"`
	First  struct {
		Run string `json:"run_id"`
		Seq uint64 `json:"seq"`
	} `json:"first"`
}

func policyLink(agent string) string { return "/ui/agents/" + url.PathEscape(agent) + "/policy" }

func (c *console) policyPage(r *http.Request, caller *service.Caller) (*view, error) {
	p, b, err := c.policy(r, caller)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	p.Saved = p.Override.Text != "" && q.Get("saved") == p.Override.Digest // and not another since, nor by a link that says so
	if run := q.Get("run"); whole(run, lowerHex) && len(run) == 36 {
		seq, err := cursor(q.Get("record"))
		if err == nil && seq > 0 {
			if p.Hint, err = c.why(r, caller, run, seq); err != nil {
				p.Hint = nil // what led here is not there any more
			}
		}
	}
	if q.Get("from") == "used" {
		var made struct {
			Policy string `json:"policy"`
		}
		err := c.ask(r.Context(), caller, nil, &made, "caps", "suggest", "--override", b.Path)
		if err != nil {
			if p.Problem, err = told(err); err != nil {
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
	p := &shownPolicy{Agent: b.Name, Version: b.Version, Suggested: policyLink(b.Name) + "?from=used#editor", MayTry: caller.Can(service.Operate), MaySave: maySave(caller)}
	if err := c.ask(r.Context(), caller, nil, &p.Held, "caps", "show", b.Path); err != nil {
		return nil, b, err
	}
	if err := c.ask(r.Context(), caller, nil, &p.Override, "caps", "override", b.Path); err != nil {
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

// ofHost reports whether a caller is a person on this host rather than a token.
func ofHost(c *service.Caller) bool { return strings.HasPrefix(c.Name, "user:") }

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
	args := []string{"caps", "override", b.Path, "-"}
	if save {
		was := r.PostForm.Get("was")
		if was == "" || !whole(was, nameLetter) {
			return nil, &badRequest{"the form does not say which override was edited; load the page again"}
		}
		args = append(args, "--save", "--was="+was)
		if !ofHost(caller) {
			args = append(args, "--narrow")
		}
	}
	if weight(text) > editorRoom {
		return nil, &badRequest{"the text is longer than a page has room for; save it as a file, and give that to rlp caps override " + b.Name + " FILE"}
	}
	p.Text, p.Edited = text, true
	var o override
	if err := c.ask(r.Context(), caller, []byte(text), &o, args...); err != nil {
		if p.Problem, err = told(err); err != nil {
			return nil, err
		}
		p.Problem = inText(p.Problem, p.Override.Path)
		v := policyView(p)
		v.Status = http.StatusBadRequest
		return v, nil
	}
	if save {
		c.Log.Info("override saved", "agent", b.Name, "tenant", caller.Tenant, "caller", caller.Name)
		return &view{Goto: policyLink(b.Name) + "?saved=" + o.Change.Digest}, nil
	}
	p.Change = o.Change
	var f forecast
	if err := c.ask(r.Context(), caller, []byte(text), &f, "caps", "whatif", "--override", "-", "--agent", b.Name); err != nil {
		if p.Problem, err = told(err); err != nil {
			return nil, err
		}
	} else {
		p.Forecast = &f
	}
	return policyView(p), nil
}

// inText gives places of the file in which a text would be saved as places of the
// text.
func inText(problem, file string) string {
	return regexp.MustCompile(regexp.QuoteMeta(file)+`:(\d+):(\d+):`).ReplaceAllString(problem, "line $1, column $2:")
}
