package knowledge

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/source"
	"runloop.dev/rlp/launcher/compose"
)

// An Import is what was imported.
type Import struct {
	Tenant    string           `json:"tenant_id"`
	Domain    string           `json:"domain"`
	Added     int              `json:"added"`
	Changed   int              `json:"changed"`
	Unchanged int              `json:"unchanged"`
	Records   []Imported       `json:"records"`
	Skipped   []source.Skipped `json:"skipped"`

	view *kb.View

	waiting []kb.Item // to be stored together
	at      []int     // their places in Records
	bytes   int       // of their values
}

// An Imported is one document.
type Imported struct {
	Key      string `json:"key"`
	Tenant   string `json:"tenant_id"`
	Status   string `json:"status"` // added, changed or unchanged
	Revision uint64 `json:"revision"`
	ETag     string `json:"etag"`
	Source   string `json:"source"`
	Label    string `json:"label"`
}

// take stores one document, unless that version of it is stored.
func (im *Import) take(ctx context.Context, d source.Document) error {
	o := kb.Origin{Source: d.Source, Label: kb.Untrusted, ETag: d.ETag}
	was, err := im.view.Get(ctx, im.Domain, d.Key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r := Imported{
		Key: d.Key, Tenant: im.Tenant, Status: "unchanged", Revision: was.Revision, ETag: d.ETag,
		Source: d.Source, Label: o.Label,
	}
	switch {
	case err == nil && was.Origin.ETag == d.ETag:
		im.Unchanged++
		im.Records = append(im.Records, r)
		return nil
	case err == nil:
		im.Changed++
		r.Status = "changed"
	default:
		im.Added++
		r.Status = "added"
	}
	if len(im.waiting) == kb.MaxItems || im.bytes+len(d.Value) > kb.MaxItemBytes {
		if err := im.flush(ctx); err != nil {
			return err
		}
	}
	im.waiting = append(im.waiting, kb.Item{Key: d.Key, Value: d.Value, Origin: o, Revision: was.Revision})
	im.at, im.bytes = append(im.at, len(im.Records)), im.bytes+len(d.Value)
	im.Records = append(im.Records, r)
	return nil
}

// flush stores what is waiting.
func (im *Import) flush(ctx context.Context) error {
	revisions, err := im.view.PutAll(ctx, im.Domain, im.waiting)
	if err != nil {
		return err
	}
	for i, rev := range revisions {
		im.Records[im.at[i]].Revision = rev
	}
	im.waiting, im.at, im.bytes = im.waiting[:0], im.at[:0], 0
	return nil
}

// ImportFrom stores the documents of a folder or a JSONL file, as untrusted ones.
func ImportFrom(
	ctx context.Context, r *compose.Reader, path, domain string, o source.Options,
) (im *Import, err error) {
	if err := r.OwnPaths(path); err != nil {
		return nil, err
	}
	err = With(ctx, r, kb.Origin{}, func(s *Session) error {
		if o.Home, err = os.Stat(s.home.Dir()); err != nil {
			return compose.InputErr(err)
		}
		im = &Import{
			Tenant: s.home.Tenant(), Domain: domain, Records: []Imported{}, Skipped: []source.Skipped{}, view: s.view,
		}
		skipped, err := source.Read(ctx, path, o, func(d source.Document) error { return im.take(ctx, d) })
		if err != nil {
			return err
		}
		im.Skipped = append(im.Skipped, skipped...)
		return im.flush(ctx)
	})
	return im, err
}
