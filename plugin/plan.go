package plugin

import (
	"context"
	"encoding/base64"
	"fmt"
)

// Intent is what the plugin would ask the cloud for.
type Intent struct {
	// Request is the body of the request that creates one server, with the
	// size of the user data in place of the data.
	Request any `json:"request"`
	// Room is how many such servers fit into what the project's limits leave;
	// -1 when nothing limits them.
	Room int `json:"room"`
	// Limit is what runs out first.
	Limit string `json:"limit"`
	// Doubts are what may keep the cloud from creating such a server all the
	// same, as [Check] would tell.
	Doubts []Finding `json:"doubts,omitempty"`
}

// Plan returns what creating a server would ask for, and how many fit into the
// project's limits. It changes nothing.
func Plan(ctx context.Context, config Config, opts ...Option) (Intent, error) {
	o, err := open(ctx, config, opts)
	if err != nil {
		return Intent{}, err
	}
	defer o.client.Close()
	limits, err := o.client.Limits(ctx)
	if err != nil {
		return Intent{}, err
	}
	spec := o.spec(config.Name+"-RANDOM", o.found.image.ID)
	size := base64.StdEncoding.EncodedLen(len(spec.UserData))
	spec.UserData = nil
	intent := Intent{Request: spec.Request(), Doubts: o.found.doubts}
	for _, f := range o.found.disk(config.Server) {
		if !f.OK {
			intent.Doubts = append(intent.Doubts, f)
		}
	}
	if size > 0 {
		intent.Request = map[string]any{"request": spec.Request(), "user_data": fmt.Sprintf("%d of %d characters", size, maxUserData)}
	}
	intent.Room, intent.Limit = limits.Room(o.found.flavor)
	return intent, nil
}
