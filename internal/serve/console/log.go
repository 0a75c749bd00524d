package console

import (
	"encoding/base64"
	"errors"
	"net/http"

	"runloop.dev/rlp/internal/serve/service"
)

// errBusy says that what takes long is being done for somebody else.
var errBusy = &service.UnavailableError{Why: errors.New("this is being done for somebody else at the moment; try " +
	"again in a few seconds")}

type shownLog struct {
	Size     uint64
	Root     string
	Verified *verifiedAt
}

func (c *console) logPage(r *http.Request, caller *service.Caller) (*view, error) {
	log, err := c.Host.Log(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	head, err := log.Head(r.Context())
	if err != nil {
		return nil, err
	}
	d := shownLog{Size: head.Size, Root: base64.StdEncoding.EncodeToString(head.Root[:])}
	c.told.Lock()
	defer c.told.Unlock()
	if v, ok := c.verified[caller.Tenant]; ok {
		d.Verified = &v
	}
	return &view{Page: "log", Title: "Log", Nav: "log", Data: d}, nil
}

// verifyLog reads the whole log of the caller's tenant.
func (c *console) verifyLog(r *http.Request, caller *service.Caller) (*view, error) {
	if !c.heavy.TryLock() {
		return nil, errBusy
	}
	defer c.heavy.Unlock()
	began := c.Now()
	found, err := c.Host.Verify(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	v := verifiedAt{Verification: found, At: c.Now().UTC()}
	v.Took = v.At.Sub(began)
	c.told.Lock()
	defer c.told.Unlock()
	c.verified[caller.Tenant] = v
	return &view{Goto: "/ui/log#verified"}, nil
}
