package console

import (
	"net/http"
	"time"

	"runloop.dev/rlp/internal/service"
)

// lanesDocument is what rlp lanes prints.
type lanesDocument struct {
	Auto   string `json:"auto"`
	Reason string `json:"reason"`
	Lanes  []struct {
		Name      string `json:"name"`
		Available bool   `json:"available"`
		Reason    string `json:"reason"`
		Remedy    string `json:"remedy"`
		Controls  []struct {
			Control string `json:"control"`
			Level   string `json:"level"`
			Reason  string `json:"reason"`
			Remedy  string `json:"remedy"`
		} `json:"controls"`
	} `json:"lanes"`
}

type shownLanes struct {
	lanesDocument
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
	var d lanesDocument
	if err := c.ask(r.Context(), caller, nil, &d, "lanes"); err != nil {
		return nil, err
	}
	c.told.Lock()
	defer c.told.Unlock()
	c.lanes, c.lanesAt = d, c.Now().UTC()
	return &view{Goto: "/ui/lanes"}, nil
}
