package conf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/setting/conf"
)

type common struct {
	Ageing time.Duration `json:"ageing,omitzero" zero:"never"`
	Wait   time.Duration `json:"wait,omitzero"`
}

type network struct {
	VNI   frame.VNI    `json:"vni"`
	Peers []netip.Addr `json:"peers,omitempty"`
	common
	Far *network `json:"far,omitzero"`
}

// A config has an Unmarshaler, as node.Config has, which calls Read.
type config struct {
	Name     string            `json:"name"`
	Networks []network         `json:"networks,omitempty"`
	Labels   map[string]uint16 `json:"labels,omitempty"`
	On       bool              `json:"on,omitzero"`
	Level    int8              `json:"level,omitzero"`
	Hidden   string            `json:"-"`
}

func (c config) MarshalJSON() ([]byte, error) { return conf.Write(c) }

func (c *config) UnmarshalJSON(text []byte) error {
	_, err := conf.Read(text, c, nil)
	return err
}

// Check stands for that of a package.
func (c *common) Check() error {
	w := setting.Of("test: common")
	if c.Wait > time.Hour {
		w.Want("Wait", c.Wait, "at most an hour")
	}
	return w.Err()
}

func Example() {
	var c config
	r, err := conf.Read([]byte(`{
	// two networks
	"name": "a",
	"networks": [
		{"vni": 1, "wait": "61m", "ageing": "0s"},
		{"vni": 2, "peers": ["10.0.0.1", "10.0.0"]},
	],
}`), &c, nil)
	if err != nil {
		fmt.Println(err) // no JSON
		return
	}
	for i, n := range c.Networks {
		r.Ask(fmt.Sprintf("networks[%d]", i), n, n.Check)
	}
	if c.Name == "a" {
		r.Fail("name", c.Name, "is taken")
	}
	fmt.Println(r.Err())
	// Output:
	// 3:10: name: "a": is taken
	// 5:22: networks[0].wait: 1h1m0s: must be at most an hour
	// 6:36: networks[1].peers[1]: "10.0.0": must be an IP address such as 10.0.0.1
}

func TestRoundTrip(t *testing.T) {
	for _, c := range []config{
		{},
		{Name: "a\"b\n", On: true, Level: -3, Labels: map[string]uint16{"x": 1, "y.z": 65535, "": 2}},
		{Networks: []network{
			{VNI: frame.MaxVNI, Peers: []netip.Addr{netip.MustParseAddr("fe80::1%eth0")}, common: common{Ageing: -1, Wait: time.Second}},
			{Far: &network{common: common{Ageing: time.Hour}}},
		}},
	} {
		text := check.Must(json.Marshal(c))(t)
		var back config
		r, err := conf.Read(text, &back, nil)
		if err != nil || r.Err() != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s: %+v, %v, %v", text, back, err, r.Err())
		}
		back = config{}
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s: json: %+v, %v", text, back, err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	was := map[string]string{"nets": "is now networks"}
	for text, want := range map[string]string{
		`{"name": 1}`:                         `1:10: name: 1: must be a string`,
		`null`:                                `1:1: null: must be an object`,
		`[]`:                                  `1:1: a list: must be an object`,
		`{"name": null}`:                      `1:10: name: null: leave the key out instead`,
		`{"name": "a", "name": "b"}`:          `1:15: name: duplicate key`,
		`{"labels": {"x": 1, "x": 2}}`:        `1:21: labels.x: duplicate key`,
		`{"labels": {"x": 65536}}`:            `1:18: labels.x: 65536: must be 0 to 65535`,
		`{"level": 128}`:                      `1:11: level: 128: must be a whole number up to 127`,
		`{"Hidden": "x"}`:                     `1:2: Hidden: unknown key; allowed are labels, level, name, networks, on`,
		`{"nets": []}`:                        `1:2: nets: is now networks`,
		`{"on": "true"}`:                      `1:8: on: "true": must be true or false`,
		`{"networks": [{}]}`:                  `1:15: networks[0].vni: required`,
		`{"networks": [{"vni": 4294967296}]}`: `1:23: networks[0].vni: 4294967296: must be 0 to 16777215`,
		`{"networks": [{"vni": 1, "wait": "-1s"}]}`:     `1:34: networks[0].wait: "-1s": must be a duration such as 300s`,
		"{\n\"networks\": [{\"vni\": 1, \"far\": {}}]}": `2:32: networks[0].far.vni: required`,
	} {
		r, err := conf.Read([]byte(text), new(config), was)
		if err != nil || r.Err() == nil || r.Err().Error() != want {
			t.Errorf("%s: %v, %v\nwant %s", text, err, r.Err(), want)
		}
	}
	deep := strings.Repeat("[", 101)
	for text, want := range map[string]string{
		``:             `1:1: unexpected end of the file`,
		"{\n\"name\":": `2:8: unexpected end of the file`,
		`{,}`:          `1:2: invalid character ',' looking for beginning of object key string`,
		deep:           `1:101: lists and objects are nested more than 100 deep`,
		"\ufeff{}":     `1:1: a byte order mark: save the file as UTF-8 without one`,
		`{“name”: 1}`:  `1:2: invalid character '“'`,
	} {
		r, err := conf.Read([]byte(text), new(config), was)
		var errs setting.Errors
		if r != nil || !errors.As(err, &errs) || err.Error() != want {
			t.Errorf("%s: %v, %v\nwant %s", text, r, err, want)
		}
	}
}

// A file names its schema at the top, for editors, and nowhere else.
func TestSchemaKey(t *testing.T) {
	for text, want := range map[string]string{
		`{"$schema": "x.json"}`: "",
		`{"$schema": 5}`:        `1:13: ["$schema"]: 5: must be a string`,
		`{"networks": [{"vni": 1, "$schema": "x.json"}]}`: "unknown key",
	} {
		r, err := conf.Read([]byte(text), new(config), nil)
		if err == nil {
			err = r.Err()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// What the packages say of a part is at the key of its field, and at the nearest that is in the file.
func TestKey(t *testing.T) {
	of := reflect.TypeFor[config]()
	for path, want := range map[string]string{
		"Name": "name", "Networks[2].Ageing": "networks[2].ageing", "Networks[0].Far.Peers[1]": "networks[0].far.peers[1]",
		`Labels["a"]`: "labels.a", `Labels["a.b"]`: `labels["a.b"]`, `Labels["a]\"[0]."]`: `labels["a]\"[0]."]`, "Hidden": "", "Networks[1].common": "networks[1]", "None": "", "Name.More": "name", "": "",
	} {
		if got := conf.Key(of, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// The first error of a key is told, what follows from a wrong value is not, and there is an end.
func TestReport(t *testing.T) {
	r := new(conf.Report)
	if r.Err() != nil || r.Failed("a") || r.Told("a") {
		t.Error("of nothing, something is told")
	}
	r.Fail("a.b[1]", nil, "first")
	r.Fail("a.b[1]", nil, "second")
	r.Ask("a.b", 0, func() error { return errors.New("test: all of it is wrong") })
	r.Ask("c", 0, func() error { return errors.New("test: all of it is wrong") })
	if got, want := r.Err().Error(), "a.b[1]: first\nc: test: all of it is wrong"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for key, want := range map[string]bool{"a.b[1]": true, "a.b": true, "a": true, "a.b[0]": false, "c": true} {
		if r.Failed(key) != want {
			t.Errorf("%s failed: %v", key, !want)
		}
	}
	if r.Told("a.b") || !r.Told("c") {
		t.Error("an error is told at another key")
	}
	for i := range 2 * conf.MaxErrors {
		r.Fail(fmt.Sprint(i), nil, "wrong")
	}
	for range 2 {
		var errs setting.Errors
		if errors.As(r.Err(), &errs); len(errs) != conf.MaxErrors+1 || errs[conf.MaxErrors].Text != "and more" {
			t.Errorf("%d errors, the last %v", len(errs), errs[len(errs)-1])
		}
	}
}
