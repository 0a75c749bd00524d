package console

import (
	"net/http"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/ask"
)

type shownLanes struct {
	ask.LaneSurvey
	At time.Time
}

func (c *console) lanesPage(*http.Request, *service.Caller) (*view, error) {
	c.told.Lock()
	defer c.told.Unlock()
	return &view{Page: "lanes", Title: "Lanes", Nav: "lanes", Data: shownLanes{c.lanes, c.lanesAt}}, nil
}

// tryLanes tries them, which takes seconds.
func (c *console) tryLanes(r *http.Request, caller *service.Caller) (*view, error) {
	if !c.heavy.TryLock() {
		return nil, errBusy
	}
	defer c.heavy.Unlock()
	d, err := c.Host.Lanes(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	c.told.Lock()
	defer c.told.Unlock()
	c.lanes, c.lanesAt = *d, c.Now().UTC()
	return &view{Goto: "/ui/lanes"}, nil
}
