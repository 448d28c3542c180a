package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A dry run says what happens, and what happened is what two readings differ in.
func TestPutConfig(t *testing.T) {
	text := basic(t)
	r := begin(t, text)
	c, ctx := api.NewClient(r.socket), t.Context()
	text = strings.ReplaceAll(text, "SOCKET", r.socket)
	next := strings.NewReplacer(`{"vni": 20}`, `{"vni": 30, "ageing": "60s"} /* in place of 20 */`, `"flood": ["127.0.0.2"]`, `"flood": ["127.0.0.2", "127.0.0.3"]`,
		`"action": "allow"`, `"action": "deny"`, `"mac": "02:00:00:00:ff:10"`, `"mac": "02:00:00:00:ff:11"`).Replace(text)
	before, _, err := c.Config(ctx)
	must(t, err)
	dry, err := c.SetConfig(ctx, []byte(next), &api.SetOptions{DryRun: true})
	must(t, err)
	if same, _, err := c.Config(ctx); err != nil || string(same) != string(before) || dry.Applied {
		t.Errorf("a dry run has changed something: %v %+v", err, dry)
	}
	done := check.Must(c.SetConfig(ctx, []byte(next), nil))(t)
	if !done.Applied || fmt.Sprint(done.Differences) != fmt.Sprint(dry.Differences) {
		t.Errorf("%+v, a dry run said %+v", done, dry)
	}
	var paths []string
	for _, d := range done.Differences {
		paths = append(paths, d.Op+" "+d.Path)
	}
	want := []string{"change policies[p].rules[web].action", "change segments[vni 10].flood", "change segments[vni 10].gateway.mac", "del segments[vni 20]", "add segments[vni 30]"}
	if !slices.Equal(paths, want) {
		t.Errorf("%q, want %q", paths, want)
	}
	after, _, err := c.Config(ctx)
	must(t, err)
	was := check.Must(file.Parse(before))(t)
	is, err := file.Parse(after)
	must(t, err)
	if got := differences(was, is); fmt.Sprint(got) != fmt.Sprint(done.Differences) {
		t.Errorf("between two readings: %v", got)
	}
	if again, err := c.SetConfig(ctx, after, nil); err != nil || len(again.Differences) > 0 {
		t.Errorf("what was read differs from what is: %+v %v", again, err)
	}
	must(t, c.Reload(ctx))
	if back, _, err := c.Config(ctx); err != nil || string(back) != string(before) {
		t.Errorf("after a reload: %v\n%s", err, back)
	}
}

// What a file is refused for, the API refuses in the same words and at the same places; nothing changes.
func TestPutRefused(t *testing.T) {
	r := begin(t, basic(t))
	before, _, _ := api.NewClient(r.socket).Config(t.Context())
	for _, text := range []string{
		"{\n  \"segments\": [{\"vni\": 1, \"ageing\": 5}, {\"vni\": 1}],\n  \"colour\": 1}", `{"segments": [`, "[]", `{"tunnels": [{"name": "x"}]}`,
	} {
		_, err := file.Parse([]byte(text))
		want := located("config", err)
		for _, ask := range []func(c *api.Client) error{
			func(c *api.Client) error { _, err := c.SetConfig(t.Context(), []byte(text), nil); return err },
			func(c *api.Client) error {
				_, err := c.SetConfig(t.Context(), []byte(text), &api.SetOptions{DryRun: true})
				return err
			},
		} {
			var refused *api.Error
			if err := ask(api.NewClient(r.socket)); !errors.As(err, &refused) || refused.Status != 422 || strings.Join(refused.Lines, "\n") != want.Error() {
				t.Errorf("%s: %v %+v, want %v", text, err, refused, want)
			}
		}
	}
	gone := strings.ReplaceAll(strings.Replace(basic(t), `"segments"`, `"ports": [{"name": "nope0", "type": "packet"}], "segments"`, 1), "SOCKET", r.socket)
	r.gets(422, "PUT", "/v1/config", gone, `nope0`)
	for query, want := range map[string]int{"?dry-run=no": 400, "?dry": 400, "?dry-run;": 400, "?dry-run=%zz": 400, "?dry-run&dry-run=no": 400} {
		r.gets(want, "PUT", "/v1/config"+query, "{}")
	}
	r.gets(400, "PUT", "/v1/config", " \n", "use {} for a node that does nothing")
	if after, _, err := api.NewClient(r.socket).Config(t.Context()); err != nil || string(after) != string(before) {
		t.Errorf("%v\n%s", err, after)
	}
}

// A body that is too long is refused, with its length or without one.
func TestPutEndless(t *testing.T) {
	r := begin(t, basic(t))
	var refused *api.Error
	if _, err := api.NewClient(r.socket).SetConfig(t.Context(), make([]byte, 100<<20), nil); !errors.As(err, &refused) || refused.Status != 413 {
		t.Errorf("%v", err)
	}
	req := check.Must(http.NewRequest("PUT", "http://node/v1/config", io.NopCloser(endless{})))(t)
	if resp, err := r.client.Do(req); err == nil { // or the client was still writing when the node closed the connection
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Error(resp.Status)
		}
	}
	r.gets(200, "GET", "/v1/fdb", "")
}

// A client that sends 100 MB before it reads, as many do, sees why they are refused.
func TestPutTooLongThenRead(t *testing.T) {
	r := begin(t, basic(t))
	part := bytes.Repeat([]byte{' '}, 1<<20)
	for what, header := range map[string]string{
		"with its length": fmt.Sprintf("Content-Length: %d", 100<<20),
		"without it":      "Transfer-Encoding: chunked",
	} {
		c, err := net.Dial("unix", r.socket)
		must(t, err)
		defer c.Close()
		fmt.Fprintf(c, "PUT /v1/config HTTP/1.1\r\nHost: node\r\n%s\r\n\r\n", header)
		for n := range 100 {
			if what == "without it" {
				fmt.Fprintf(c, "%x\r\n%s\r\n", len(part), part)
			} else if _, err := c.Write(part); err != nil {
				t.Fatalf("%s: after %d MB: %v", what, n, err)
			}
		}
		if what == "without it" {
			if _, err := io.WriteString(c, "0\r\n\r\n"); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		resp := check.Must(http.ReadResponse(bufio.NewReader(c), nil))(t)
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), "body: larger than 16777216 bytes") {
			t.Errorf("%s: %s %s", what, resp.Status, text)
		}
	}
	// A longer one is not even read.
	c, err := net.Dial("unix", r.socket)
	must(t, err)
	defer c.Close()
	fmt.Fprintf(c, "PUT /v1/config HTTP/1.1\r\nHost: node\r\nContent-Length: %d\r\n\r\n", maxDiscard+1)
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%v %v", resp, err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// Of clients that change what they have read, at the same time, one wins; the others are told.
func TestPutRace(t *testing.T) {
	r := begin(t, basic(t))
	c := api.NewClient(r.socket)
	text, tag, err := c.Config(t.Context())
	must(t, err)
	if _, same, err := c.Part(t.Context(), api.Part{List: "segments", Name: "10"}); err != nil || same != tag || tag == "" {
		t.Errorf("the tag of a part is %q, that of the whole %q, %v", same, tag, err)
	}
	var all sync.WaitGroup
	var won, lost atomic.Int32
	for i := range 4 {
		all.Go(func() {
			var cfg map[string]any
			json.Unmarshal(text, &cfg)
			cfg["segments"] = append(cfg["segments"].([]any), map[string]any{"vni": 1000 + i})
			body, _ := json.Marshal(cfg)
			_, err := c.SetConfig(t.Context(), body, &api.SetOptions{Tag: tag})
			if refused := (*api.Error)(nil); errors.As(err, &refused) && refused.Status == http.StatusPreconditionFailed {
				lost.Add(1)
			} else if err != nil {
				t.Error(err)
			} else {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || lost.Load() != 3 {
		t.Errorf("%d changed it, %d were told", won.Load(), lost.Load())
	}
	old, part := &api.SetOptions{Tag: tag}, api.Part{List: "segments", Name: "10"}
	for what, f := range map[string]func() (api.ConfigChange, error){
		"SetPart":    func() (api.ConfigChange, error) { return c.SetPart(t.Context(), part, []byte(`{"vni": 10}`), old) },
		"DeletePart": func() (api.ConfigChange, error) { return c.DeletePart(t.Context(), part, old) },
		"ChangePort": func() (api.ConfigChange, error) {
			return c.ChangePort(t.Context(), api.PortChange{Op: api.Add, Name: "tap1"}, old)
		},
	} {
		var refused *api.Error
		if _, err := f(); !errors.As(err, &refused) || refused.Status != http.StatusPreconditionFailed {
			t.Errorf("%s with an old tag: %v", what, err)
		}
	}
}

// Lists are compared by what their elements are called; another order is a difference of its own.
func TestDifferences(t *testing.T) {
	for _, c := range []struct{ old, next, want string }{
		{`{"a": 1}`, `{"a": 1}`, `[]`},
		{`{"a": 1}`, `{"a": 2, "b": {}}`, `[{"op":"change","path":"a","old":1,"new":2},{"op":"add","path":"b","new":{}}]`},
		{`{"l": [{"name": "x", "v": 1}, {"name": "y"}]}`, `{"l": [{"name": "x"}, {"name": "z"}]}`,
			`[{"op":"del","path":"l[x].v","old":1},{"op":"del","path":"l[y]","old":{"name":"y"}},{"op":"add","path":"l[z]","new":{"name":"z"}}]`},
		{`{"l": [{"vni": 1}, {"vni": 2}]}`, `{"l": [{"vni": 2}, {"vni": 1}]}`, `[{"op":"change","path":"l (order)","old":[1,2],"new":[2,1]}]`},
		{`{"l": [{"vni": 16777215}]}`, `{"l": [{"vni": 1000000}]}`,
			`[{"op":"del","path":"l[vni 16777215]","old":{"vni":16777215}},{"op":"add","path":"l[vni 1000000]","new":{"vni":1000000}}]`},
		{`{"l": [1, 2]}`, `{"l": [1]}`, `[{"op":"change","path":"l","old":[1,2],"new":[1]}]`},
		{`{"l": [{"x": 1}]}`, `{"l": [{"x": 2}]}`, `[{"op":"change","path":"l","old":[{"x":1}],"new":[{"x":2}]}]`},
		{`{"l": [{"name": "x"}, {"name": "x"}]}`, `{"l": []}`, `[{"op":"change","path":"l","old":[{"name":"x"},{"name":"x"}],"new":[]}]`},
		{`{"l": []}`, `{"l": {}}`, `[{"op":"change","path":"l","old":[],"new":{}}]`},
	} {
		d := differ{list: []api.Difference{}}
		old := check.Must(treeOf([]byte(c.old)))(t)
		next := check.Must(treeOf([]byte(c.next)))(t)
		d.value("", old, next)
		if got, _ := json.Marshal(d.list); string(got) != c.want {
			t.Errorf("%s -> %s: %s, want %s", c.old, c.next, got, c.want)
		}
	}
}
