package main

import (
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/authenticator/token"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/spf13/cobra"
)

// tokenCommand is about the tokens of authenticator/token.
func tokenCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make tokens for workloads, for authenticator/token",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(tokenCreate(p))
	return c
}

func tokenCreate(p *program) *cobra.Command {
	var file string
	var ttl time.Duration
	who := istio.Identity{}
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a token for a workload, and add its hash to a file of tokens",
		Long: `Make a token for a workload, add its SHA-256 and whose it is to the file that authenticator/token of plugins.yaml reads, and print the token. It stands
nowhere else: who loses it makes another one. A control plane that runs takes the file's change at once.`,
		Example: `  coxswain token create --file tokens.yaml --namespace shop --service-account web
  coxswain token create --file tokens.yaml --namespace shop --service-account web --ttl 720h > web.token`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, ok := istio.ParseIdentity(who.String()); !ok || file == "" {
				return usageError{fmt.Errorf("coxswain token create wants --file, --namespace and --service-account, such as: " +
					"coxswain token create --file tokens.yaml --namespace shop --service-account web")}
			}
			if ttl < 0 {
				return usageError{fmt.Errorf("--ttl: %s is less than 0; leave it out for a token that counts for ever", ttl)}
			}
			var expires time.Time
			until := "it counts until it is taken out of the file"
			if ttl > 0 {
				expires = time.Now().Add(ttl).Truncate(time.Second)
				until = "it expires at " + expires.UTC().Format(time.RFC3339)
			}
			made, err := token.Create(file, who.String(), expires)
			if err != nil {
				return err
			}
			fmt.Fprintf(p.err, "a token of %s is in %s; %s\n", who, file, until)
			fmt.Fprintln(p.out, made)
			return nil
		},
	}
	c.Flags().StringVar(&file, "file", "", "the file of tokens; it is made if it is not there")
	c.Flags().StringVarP(&who.Namespace, "namespace", "n", "", "the workload's namespace")
	c.Flags().StringVar(&who.ServiceAccount, "service-account", "", "the workload's service account")
	c.Flags().StringVar(&who.TrustDomain, "trust-domain", istio.LocalTrustDomain, "the mesh's trust domain")
	c.Flags().DurationVar(&ttl, "ttl", 0, "how long it counts, such as 720h; 0: until it is taken out of the file")
	return c
}
