package compose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/run"
)

// publishTime bounds one publication: what is not told by then is told the next
// time.
const publishTime = 10 * time.Second

// Publisher tells the sinks of config.toml of a tenant's log; nil: there are none,
// or there is nothing to tell yet.
func Publisher(h home.Home, cfg config.Config, post evidence.Poster) (*evidence.Publisher, error) {
	if len(cfg.Audit.Publish) == 0 {
		return nil, nil
	}
	key, err := evidence.ReadKey(h.Root(), h.Tenant())
	if err != nil {
		return nil, err
	}
	p := &evidence.Publisher{Dir: h.Root(), Origin: key.Public().Origin(), Now: time.Now}
	for _, name := range cfg.Audit.Publish {
		s, err := evidence.ParseSink(name, post)
		if err != nil {
			return nil, err
		}
		p.Sinks = append(p.Sinks, s)
	}
	return p, nil
}

// Publish tells the sinks of config.toml of the checkpoints that the log has and
// they have not. What each was told is returned; an error is of all of them.
func Publish(ctx context.Context, h home.Home, cfg config.Config, s *kb.Store) ([]evidence.Told, error) {
	if len(cfg.Audit.Publish) == 0 {
		return nil, nil
	}
	head, err := s.Head(ctx)
	if err != nil || head.Size == 0 {
		return nil, err
	}
	client := egress.New(egress.Config{})
	defer client.Close()
	p, err := Publisher(h, cfg, poster(client))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTime)
	defer cancel()
	return p.Publish(ctx, func(above uint64) ([]evidence.Stored, error) { return due(ctx, s, above, head.Size) })
}

// due are the checkpoints above a size: the newest of them, as many as a sink is
// told of at once, or the newest alone if it was told of none. A log that is
// shorter than what a sink was told of is another one, and is not told as that.
func due(ctx context.Context, s *kb.Store, above, size uint64) ([]evidence.Stored, error) {
	if above > size { // another process may have made it longer
		now, err := s.Head(ctx)
		if err == nil && above > now.Size {
			err = fmt.Errorf("it was told of %d records, and the log has %d: it was cut, or it is an older copy of itself",
				above, now.Size)
		}
		if err != nil {
			return nil, err
		}
	}
	most := evidence.MaxPublished
	if above == 0 {
		most = 1
	}
	var list []evidence.Stored
	for c, err := range s.Checkpoints(ctx, above) {
		if err != nil {
			return nil, err
		}
		if len(list) == 2*most {
			list = append(list[:0], list[most:]...)
		}
		list = append(list, evidence.Stored{Size: c.Head.Size, Note: c.Note})
	}
	return list[max(0, len(list)-most):], nil
}

// poster posts checkpoints by way of client, which follows no redirect and
// reaches a private address only where the settings name that address.
func poster(client *egress.Client) evidence.Poster {
	return func(ctx context.Context, url string, body []byte) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
		req.Header.Set("User-Agent", "rlp")
		resp, err := client.Send(req, true)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode < 200 || resp.StatusCode > 299 {
			return fmt.Errorf("it answered %d %s, and a sink that has taken it answers 2xx", resp.StatusCode,
				http.StatusText(resp.StatusCode))
		}
		return nil
	}
}

// publishing is what a launch does about its checkpoint when it ends, while the
// store is still there. What cannot be told is no failure of the run: the
// operator is warned, and it is told the next time.
func (a *Runner) publishing(ctx context.Context, c *Composition, spec *run.Spec) func() error {
	return func() error {
		if len(c.Config.Audit.Publish) == 0 {
			return nil
		}
		ctx := context.WithoutCancel(ctx) // of a run that was interrupted, too
		told, err := func() ([]evidence.Told, error) {
			s, err := c.common.store.open(ctx)
			if err != nil {
				return nil, err
			}
			if _, err := s.Ingest(ctx); err != nil {
				return nil, err
			}
			return Publish(ctx, c.Home, c.Config, s)
		}()
		if err != nil {
			err = fmt.Errorf("publishing checkpoints: %w", err)
		}
		for _, t := range told {
			err = errors.Join(err, t.Err)
		}
		if err != nil {
			spec.Log.Warn("publish", "run_id", spec.RunID, "tenant", spec.Tenant, "agent", spec.Agent, "message", err.Error())
			c.Origin.warnf("%s", err)
		}
		return nil
	}
}
