package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// panel is what the test knows of a panel.
type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource struct{ UID string }
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct{ Expr, LegendFormat string }
}

type dashboard struct {
	Panels     []panel
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

var (
	metric = regexp.MustCompile(`\bvxswitch_\w+`)
	rated  = regexp.MustCompile(`(?:rate|increase)\((vxswitch_\w+)`)
	by     = regexp.MustCompile(`by \(([^)]*)\)`)
	legend = regexp.MustCompile(`{{(\w+)}}`)
)

// The dashboard asks for what the collector has, and in the right way.
func TestDashboard(t *testing.T) {
	var d dashboard
	b := must(os.ReadFile("dashboard.json"))(t)
	check.OK(t, json.Unmarshal(b, &d))
	has := labels(gather(t, newMade()))
	for _, name := range metric.FindAllString(string(b), -1) {
		if has[name] == nil {
			t.Errorf("%s is no metric", name)
		}
	}
	rows, exprs := []string{}, 0
	for _, p := range d.Panels {
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q: data source %q", p.Title, p.Datasource.UID)
		}
		for _, target := range p.Targets {
			exprs++
			checkExpr(t, p.Title, target.Expr, target.LegendFormat, has)
		}
	}
	if want := []string{"Traffic", "Drops", "FDB and neighbours", "Peers", "Underlay", "Gateway", "Policy", "Multicast"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	if exprs < 50 {
		t.Errorf("%d expressions: not all were found", exprs)
	}
	for _, v := range d.Templating.List[1:] {
		if !metric.MatchString(v.Definition) {
			t.Errorf("variable %s: %q", v.Name, v.Definition)
		}
	}
}

func checkExpr(t *testing.T, title, expr, show string, has map[string][]string) {
	names := metric.FindAllString(expr, -1)
	if len(names) == 0 {
		t.Errorf("panel %q: no metric in %s", title, expr)
		return
	}
	var grouped []string
	for _, m := range by.FindAllStringSubmatch(expr, -1) {
		grouped = append(grouped, strings.Split(m[1], ", ")...)
	}
	for _, l := range grouped {
		if l != "instance" && slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(has[n], l) }) {
			t.Errorf("panel %q: no label %s in %v", title, l, names)
		}
	}
	for _, m := range legend.FindAllStringSubmatch(show, -1) {
		if !slices.Contains(grouped, m[1]) {
			t.Errorf("panel %q: {{%s}} is not in %s", title, m[1], expr)
		}
	}
	var rates []string
	for _, m := range rated.FindAllStringSubmatch(expr, -1) {
		rates = append(rates, m[1])
	}
	for _, n := range names {
		if counts := strings.HasPrefix(expr, "count("); !counts && strings.HasSuffix(n, "_total") != slices.Contains(rates, n) {
			t.Errorf("panel %q: rates are of counters, and counters are shown as rates: %s", title, expr)
		}
	}
	if strings.Count(expr, "$instance") != len(names) || strings.Count(expr, "$job") != len(names) {
		t.Errorf("panel %q: $instance and $job do not select in %s", title, expr)
	}
}

// Panels have numbers of their own and do not overlap.
func TestDashboardLayout(t *testing.T) {
	var d dashboard
	check.OK(t, json.Unmarshal(must(os.ReadFile("dashboard.json"))(t), &d))
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q: id %d is another's too", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.X < 0 || g.X+g.W > 24 || g.W == 0 || g.H == 0 {
			t.Errorf("panel %q: at %+v", p.Title, g)
		}
		for x := range g.W {
			for y := range g.H {
				at := [2]int{g.X + x, g.Y + y}
				if taken[at] != "" {
					t.Fatalf("panel %q lies on %q", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
	}
}
