package console

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"runloop.dev/rlp/launcher"
)

// The way from the home page to a run: an agent is chosen, its form filled in, the run
// watched to its end, and run again with the same input.
func TestFromHomeToARun(t *testing.T) {
	s := newStage(t)
	s.agents = fewAgents()
	s.agents[0].InputSchema = []byte(aSchema)
	b := open(t, s.handler)
	if b == nil {
		return
	}
	b.visit("/")
	b.until("document.querySelectorAll('.chart rect.ok').length > 5 && document.querySelector('.needs li') !== null")
	b.do(chromedp.SetValue(chromedp.CSS("select[name=agent]"), "mail_writer"))
	b.do(chromedp.Click(chromedp.CSS("form[action='/ui/launch'] button")))
	b.until("location.pathname === '/ui/agents/mail_writer/launch' && document.readyState === 'complete'")
	b.do(chromedp.Click(chromedp.CSS("button.primary")))
	if evaluate[bool](b, "document.querySelector('form.launch').checkValidity()") {
		t.Error("a form without what is needed is valid")
	}
	b.do(chromedp.SetValue(chromedp.CSS("input[name='in.0']"), "Ada"), chromedp.Click(chromedp.CSS("button.primary")))
	id := <-s.begun
	b.until("location.pathname === '/ui/runs/" + id + "' && document.querySelector('button.danger') !== null")
	s.finish(t, id, &launcher.Report{Stdout: "a mail to Ada"})
	b.until("document.body.innerText.includes('a mail to Ada')")
	b.do(chromedp.Click(chromedp.CSS(".actions .primary")))
	b.until("location.search === '?again=" + id + "' && document.querySelector(\"input[name='in.0']\").value === 'Ada'")
	b.do(chromedp.Click(chromedp.CSS("button.primary")))
	again := <-s.begun
	b.until("location.pathname === '/ui/runs/" + again + "'")
	s.finish(t, again, &launcher.Report{})
	b.until("document.querySelector('button.danger') === null")
	b.do(chromedp.Click(chromedp.CSS("a[href='/ui/compare?of=" + again + "']")))
	b.until("document.querySelectorAll('main tbody tr').length >= 2")
	b.visit("/")
	b.do(chromedp.Click(chromedp.CSS(".lines [data-open]")))
	b.until("document.querySelector('h1').textContent === 'Why was this denied?' && document.querySelector('.advice') !== null")
	b.quiet()
}

// With a script times are of the reader's zone, without one they are UTC and say so.
func TestTimesAreLocal(t *testing.T) {
	s := newStage(t)
	b := look(t, s.handler)
	if b == nil {
		return
	}
	zone := emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"}
	if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, zone); err != nil {
		t.Fatal(err)
	}
	const first = "document.querySelector('main tbody time').textContent"
	b.visit("/ui/runs") // the newest run began at 21:19:00 UTC
	if at := evaluate[string](b, first); !strings.Contains(at, "11 min ago") || !strings.Contains(at, "02:49:00") {
		t.Errorf("in India the run began %q", at)
	}
	if tip := evaluate[string](b, "document.querySelector('main tbody time').title"); tip != "2026-11-22 21:19:00 UTC" {
		t.Errorf("its tip is %q", tip)
	}
	b.script(false)
	b.visit("/ui/runs")
	at, err := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS("main tbody time")))
	if err != nil || !strings.Contains(at, "11 min ago") || !strings.Contains(at, "21:19:00 UTC") {
		t.Errorf("without a script the run began %q, %v", at, err)
	}
}
