package kubernetes

import (
	"errors"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's config.
type Config struct {
	kube.Access
	Cluster        string            `json:"cluster" min:"1" doc:"The id of the cluster whose API server that is."`
	ClusterAliases map[string]string `json:"clusterAliases" doc:"Clusters by other ids that callers may say."`
	Directory      string            `json:"directory" doc:"Directory with the kubeconfigs of other clusters, where registry/clusters has the same."`
	TrustDomain    string            `json:"trustDomain" doc:"The trust domain of identities; the mesh's where it is left out."`
	Tokens
	Reviews Reviews `json:"reviews" doc:"How API servers are asked, and what is remembered of their answers."`
}

// Tokens says which ones count.
type Tokens struct {
	Audiences  []string `json:"audiences" min:"1" doc:"Whom tokens are meant for: one of these."`
	FirstParty bool     `json:"firstParty" doc:"Tokens count, too, that are meant for the API server itself, such as those of Secrets."`
}

// Reviews bounds what API servers are asked, and what is remembered.
type Reviews struct {
	Accepted   time.Duration `json:"accepted" min:"0s" doc:"How long it is remembered that a token counts."`
	Refused    time.Duration `json:"refused" min:"0s" doc:"How long it is remembered that a token doesn't count."`
	Remembered int           `json:"remembered" min:"1" doc:"How many tokens are remembered that count, and how many that don't."`
	Concurrent int           `json:"concurrent" min:"1" doc:"How many tokens are being checked at once."`
	PerPeer    int           `json:"perPeer" min:"1" doc:"How many of them may be of callers of one address."`
	Waiting    int           `json:"waiting" min:"0" doc:"How many more of callers of one address may wait for that."`
	Timeout    time.Duration `json:"timeout" min:"1ms" doc:"How long an API server may take."`
}

func defaults() Config {
	return Config{
		Access: kube.DefaultAccess(), Cluster: "Kubernetes", Tokens: Tokens{Audiences: []string{"istio-ca"}},
		Reviews: Reviews{
			Accepted: 10 * time.Second, Refused: 5 * time.Second, Remembered: 5000,
			Concurrent: 16, PerPeer: 4, Waiting: 64, Timeout: 4 * time.Second,
		},
	}
}

// Check is a sdk.Checker's.
func (c *Config) Check() error {
	if slices.Contains(c.Audiences, "") {
		return &sdk.FieldError{Field: "audiences", Err: errors.New("one is empty: tokens that are meant for others must not count here")}
	}
	return c.Access.Check()
}
