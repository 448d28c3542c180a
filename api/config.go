package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// A Difference is one difference between two configurations with defaults.
type Difference struct {
	Op   string          `json:"op"`   // add, del or change
	Path string          `json:"path"` // such as segments[vni 100].members[tap0].isolated
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

// A ConfigChange is the answer to a new configuration.
type ConfigChange struct {
	Applied     bool         `json:"applied"` // false for a dry run
	Differences []Difference `json:"differences"`
}

// SetOptions are options of a change of the configuration.
type SetOptions struct {
	DryRun bool   // changes nothing: returns the differences, and errors except those that only the system can detect, a missing address or device
	Tag    string // of what was read: the change fails with status 412 if the configuration has changed since; default: it does not matter
}

// Config returns the configuration with defaults, as a file, and its tag.
func (c *Client) Config(ctx context.Context) (config []byte, tag string, err error) {
	return c.whole(ctx, http.MethodGet, "/v1/config", nil, nil, "")
}

// SetConfig applies a configuration, which has the form of a file, under traffic. It stays until the node reads its file again.
// An error changes nothing; for wrong settings it is an [*Error] with a line for each. nil means default options.
func (c *Client) SetConfig(ctx context.Context, config []byte, o *SetOptions) (ConfigChange, error) {
	return c.set(ctx, http.MethodPut, "/v1/config", config, o)
}

// Lists are the lists of the configuration whose elements are a [Part].
var Lists = []string{"tunnels", "ports", "policies", "segments", "vrfs"}

// A Part is an element of a list of the configuration.
type Part struct {
	List string // one of Lists
	Name string // of a segment its VNI
}

// Path returns the path of requests of the element.
func (p Part) Path() string {
	return "/v1/config/" + url.PathEscape(p.List) + "/" + url.PathEscape(p.Name)
}

// Part returns an element with defaults, and the tag of the whole configuration.
func (c *Client) Part(ctx context.Context, p Part) (text []byte, tag string, err error) {
	return c.whole(ctx, http.MethodGet, p.Path(), nil, nil, "")
}

// SetPart adds an element, which has the form of a file, or replaces that with the name, as SetConfig does.
func (c *Client) SetPart(ctx context.Context, p Part, text []byte, o *SetOptions) (ConfigChange, error) {
	return c.set(ctx, http.MethodPut, p.Path(), text, o)
}

// DeletePart deletes an element that no other refers to.
func (c *Client) DeletePart(ctx context.Context, p Part, o *SetOptions) (ConfigChange, error) {
	return c.set(ctx, http.MethodDelete, p.Path(), nil, o)
}

// set changes the configuration.
func (c *Client) set(ctx context.Context, method, path string, body any, o *SetOptions) (x ConfigChange, err error) {
	o = cmp.Or(o, &SetOptions{})
	q := Query{}
	if o.DryRun {
		q["dry-run"] = "true"
	}
	text, _, err := c.whole(ctx, method, path, q, body, o.Tag)
	if err != nil {
		return x, err
	}
	return decode[ConfigChange](c, text)
}
