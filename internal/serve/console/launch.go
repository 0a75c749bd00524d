package console

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	"runloop.dev/rlp/internal/serve/service"
)

// shownLaunch is the page that launches an agent.
type shownLaunch struct {
	Agent, Version, About string
	Broken                string // why it cannot be launched
	Form                  form
	AsJSON                bool
	CanJSON               bool // the form could be one text of JSON instead
	Params                []paramField
	MayName               bool // paths of the host
	Deny                  string
	Key                   string // makes it safe to send the form twice
	Digest                string // of the bundle that the form was made for
	Problem               string
	Again                 string // the run that it begins with the input of
	Lost                  bool   // the input of which is not kept
}

// A paramField is a placeholder of the agent's policy.
type paramField struct {
	service.Param
	Value string
}

// chooseLaunch leads from the choice of an agent to its form.
func (c *console) chooseLaunch(r *http.Request, _ *service.Caller) (*view, error) {
	name := r.URL.Query().Get("agent")
	if !whole(name, nameLetter) {
		return nil, service.ErrNotFound
	}
	return &view{Goto: launchLink(name)}, nil
}

// launchPage shows the form: it launches nothing.
func (c *console) launchPage(r *http.Request, caller *service.Caller) (*view, error) {
	q := r.URL.Query()
	d, b, err := c.launchOf(r, caller, q.Get("as") == "json")
	if err != nil {
		return nil, err
	}
	if id := q.Get("again"); id != "" {
		c.again(r, caller, d, b, id)
	}
	d.Key = rand.Text()
	return launchView(d), nil
}

func launchView(d *shownLaunch) *view {
	return &view{Page: "launch", Title: "Launch " + d.Agent, Nav: "agents", Data: d}
}

func (c *console) launchOf(r *http.Request, caller *service.Caller, asJSON bool) (*shownLaunch, service.Agent, error) {
	b, err := c.bundle(r.Context(), caller, r.PathValue("name"))
	if err != nil {
		return nil, b, err
	}
	d := &shownLaunch{
		Agent: b.Name, Version: b.Version, About: b.Description, Broken: b.Problem, MayName: caller.Can(service.Operate),
		Digest: b.Digest,
		Form:   formOf(b.InputSchema, asJSON), AsJSON: asJSON,
	}
	d.CanJSON = d.Form.Whole == nil
	for _, p := range b.Params {
		d.Params = append(d.Params, paramField{Param: p})
	}
	return d, b, nil
}

// again has the form begin with what an earlier run was given, where that is kept and
// the caller may know it.
func (c *console) again(r *http.Request, caller *service.Caller, d *shownLaunch, b service.Agent, id string) {
	d.Lost = true
	run, err := c.Runs.Run(r.Context(), caller, id)
	if err != nil {
		return
	}
	q := run.Again(caller)
	if q == nil || q.Agent != b.Name || q.InputBytes != nil {
		return
	}
	if !d.Form.fillAll(q.Input) {
		d.Form, d.AsJSON, d.CanJSON = formOf(nil, true), true, false
		d.Form.Whole.fill(q.Input)
	}
	if d.Form.weight() > formRoom {
		d.Form = formOf(nil, true)
		return
	}
	d.Lost, d.Again = false, id
	for i := range d.Params {
		d.Params[i].Value = q.Params[d.Params[i].Name]
	}
	d.Deny = strings.Join(q.Deny, "\n")
}

// launch asks for the run that the form describes.
func (c *console) launch(r *http.Request, caller *service.Caller) (*view, error) {
	if err := r.ParseForm(); err != nil {
		return nil, &badRequest{"the form is too large: POST /run takes up to 64 MiB"}
	}
	posted := r.PostForm
	if weight(posted.Encode()) > formRoom {
		return nil, &badRequest{"the input is longer than a page has room for: rlp launch takes --input @FILE, and POST /run 64 MiB"}
	}
	d, b, err := c.launchOf(r, caller, posted.Get("as") == "json")
	if err != nil {
		return nil, err
	}
	d.Form.take(posted)
	d.Key, d.Deny = posted.Get("key"), posted.Get("deny")
	q := &service.Request{Door: service.HTTP, Agent: b.Name, Deny: strings.Fields(d.Deny)}
	for i := range d.Params {
		p := &d.Params[i]
		if p.Value = posted.Get("param." + p.Name); p.Value != "" {
			if q.Params == nil {
				q.Params = map[string]string{}
			}
			q.Params[p.Name] = p.Value
		}
	}
	if of := posted.Get("of"); of != b.Digest {
		return refusedForm(d, "another build of the agent was installed meanwhile: look at the form again"), nil
	}
	if q.Input, err = d.Form.input(posted); err != nil {
		return refusedForm(d, err.Error()), nil
	}
	run, err := c.Runs.Submit(r.Context(), caller, q, d.Key)
	if err != nil {
		return unlaunched(d, err)
	}
	c.Log.Info("launched from a page", "agent", b.Name, "tenant", caller.Tenant, "caller", caller.Name, "run", run.ID())
	return &view{Goto: runLink(run.ID())}, nil
}

// unlaunched is the form again where it is the form's fault, or what a page may say.
func unlaunched(d *shownLaunch, err error) (*view, error) {
	var fields service.FieldErrors
	var busy *service.BusyError
	switch {
	case errors.As(err, &fields):
		return refusedForm(d, fields.Error()), nil
	case errors.As(err, &busy):
		v := refusedForm(d, busy.Error())
		v.Status = http.StatusTooManyRequests
		return v, nil
	case errors.Is(err, service.ErrConflict): // the form was changed and sent again
		return refusedForm(d, "this form was sent before with other values: send it once more to launch another run"), nil
	case errors.Is(err, service.ErrForbidden) && len(d.Params) > 0:
		return refusedForm(d, "paths of the host are named by who may operate"), nil
	case errors.Is(err, service.ErrDraining):
		return nil, &service.UnavailableError{Why: err}
	}
	return nil, err
}

func refusedForm(d *shownLaunch, why string) *view {
	d.Problem, d.Key = why, rand.Text()
	v := launchView(d)
	v.Status = http.StatusBadRequest
	return v
}
