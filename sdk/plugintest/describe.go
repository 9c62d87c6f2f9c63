package plugintest

import (
	"fmt"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Describe says in one line what an encoded message is, without anything that may be secret.
func Describe(fromCore bool, frame []byte) string {
	if fromCore {
		var m pb.FromCore
		if err := m.Unmarshal(frame); err != nil {
			return "core   -> a message that can't be decoded: " + err.Error()
		}
		return "core   -> " + describeFromCore(&m)
	}
	var m pb.FromPlugin
	if err := m.Unmarshal(frame); err != nil {
		return "plugin -> a message that can't be decoded: " + err.Error()
	}
	return "plugin -> " + describeFromPlugin(&m)
}

// describeFromCore says in one line what a message is. Configs, credentials and payloads are left
// out: they may be secrets.
func describeFromCore(m *pb.FromCore) string {
	switch {
	case m.Hello != nil:
		return fmt.Sprintf("Hello{versions %v, instance %q, config of %d bytes}", m.Hello.Versions, m.Hello.Instance, len(m.Hello.Config))
	case m.Credit != nil:
		return fmt.Sprintf("Credit{%d bytes}", m.Credit.Bytes)
	case m.Ping != nil:
		return fmt.Sprintf("Ping{%d}", m.Ping.Id)
	case m.Drain != nil:
		return "Drain"
	case m.State != nil:
		return fmt.Sprintf("State{revision %s%s%s%s%s}", number(m.State.Revision), given(m.State.Whole, ", whole"), given(m.State.More, ", more follows"),
			given(m.State.Overtakes, ", overtakes"), tables(m.State.Tables))
	case m.Attach != nil:
		return fmt.Sprintf("Attach{connection %d, types %v}", m.Attach.Connection, short(m.Attach.Types))
	case m.Detach != nil:
		return fmt.Sprintf("Detach{connection %d}", m.Detach.Connection)
	case m.Want != nil:
		return fmt.Sprintf("Want{id %d, %s, view %d%s, names %q}", m.Want.Id, last(m.Want.Type), m.Want.View,
			given(m.Want.Wildcard, ", wildcard"), m.Want.Names)
	case m.Drop != nil:
		return fmt.Sprintf("Drop{%s, view %d%s}", last(m.Drop.Type), m.Drop.View, given(m.Drop.All, ", all"))
	case m.Authenticate != nil:
		return fmt.Sprintf("Authenticate{id %d, %d headers, %d certificates}", m.Authenticate.Id, len(m.Authenticate.Headers), len(m.Authenticate.Certificates))
	case m.Patch != nil:
		return fmt.Sprintf("Patch{id %d, %s, %d resources}", m.Patch.Id, last(m.Patch.Type), len(m.Patch.Resources))
	}
	return otherFromCore(m)
}

func otherFromCore(m *pb.FromCore) string {
	switch {
	case m.Extensions != nil:
		return fmt.Sprintf("Extensions{id %d, %d names}", m.Extensions.Id, len(m.Extensions.Names))
	case m.Freed != nil:
		return fmt.Sprintf("Freed{%v}", m.Freed.Bodies)
	case m.Missing != nil:
		return fmt.Sprintf("Missing{%v}", m.Missing.Bodies)
	case m.Explain != nil:
		return fmt.Sprintf("Explain{id %d, %s, %q}", m.Explain.Id, last(m.Explain.Type), m.Explain.Name)
	case m.Report != nil:
		return fmt.Sprintf("Report{connection %d, %s}", m.Report.Connection, last(m.Report.Type))
	case m.Ask != nil:
		return fmt.Sprintf("Ask{id %d, type %q}", m.Ask.Id, last(m.Ask.Type))
	case m.Fetched != nil:
		return fmt.Sprintf("Fetched{id %d, status %d}", m.Fetched.Id, m.Fetched.Status)
	case m.Got != nil:
		return fmt.Sprintf("Got{id %d, %d rows}", m.Got.Id, len(m.Got.Rows))
	case m.Tick != nil:
		return fmt.Sprintf("Tick{%d}", m.Tick.Id)
	case m.Store != nil:
		return describeStore(m.Store)
	case m.Stored != nil:
		return describeStored(m.Stored)
	case m.Call != nil:
		return fmt.Sprintf("Call{%d, %s, %d bytes}", m.Call.Id, m.Call.Method, len(m.Call.Request))
	}
	return "a message of a kind that is not known"
}

// describeFromPlugin is describeFromCore for the other direction.
func describeFromPlugin(m *pb.FromPlugin) string {
	switch {
	case m.Ready != nil:
		return fmt.Sprintf("Ready{version %d, %s %s, kind %d, publishes %v, derives %v}", m.Ready.Version, m.Ready.Plugin, m.Ready.PluginVersion,
			m.Ready.Kind, m.Ready.Publishes, m.Ready.Derives)
	case m.Refused != nil:
		return fmt.Sprintf("Refused{field %q, %s}", m.Refused.Field, m.Refused.Reason)
	case m.Credit != nil:
		return fmt.Sprintf("Credit{%d bytes}", m.Credit.Bytes)
	case m.Pong != nil:
		return fmt.Sprintf("Pong{%d}", m.Pong.Id)
	case m.Progress != nil:
		return "Progress"
	case m.Rows != nil:
		return fmt.Sprintf("Rows{revision %s%s}", number(m.Rows.Revision), tables(m.Rows.Tables))
	case m.Synced != nil:
		return "Synced"
	case m.Lost != nil:
		return fmt.Sprintf("Lost{%s}", m.Lost.Reason)
	case m.Found != nil:
		return "Found"
	case m.Done != nil:
		return fmt.Sprintf("Done{revision %s, %d faults}", number(m.Done.Revision), len(m.Done.Faults))
	case m.Log != nil:
		return fmt.Sprintf("Log{%s}", m.Log.Text)
	case m.Caller != nil:
		return fmt.Sprintf("Caller{id %d, identities %q, refusal %q, failure %q}", m.Caller.Id, m.Caller.Identities, m.Caller.Refusal, m.Caller.Failure)
	case m.Patched != nil:
		return fmt.Sprintf("Patched{id %d, %d resources, removes %q, error %q}", m.Patched.Id, len(m.Patched.Resources), m.Patched.Removes, m.Patched.Error)
	}
	return otherFromPlugin(m)
}

func otherFromPlugin(m *pb.FromPlugin) string {
	switch {
	case m.View != nil:
		return fmt.Sprintf("View{%d, %s, %q}", m.View.View, last(m.View.Type), m.View.Label)
	case m.Place != nil:
		return fmt.Sprintf("Place{connection %d, revision %s, %d placements%s}", m.Place.Connection, number(m.Place.Revision), len(m.Place.Placements),
			given(m.Place.Refused != "", ", refused: "+m.Place.Refused))
	case m.Bodies != nil:
		return fmt.Sprintf("Bodies{%d}", len(m.Bodies.Bodies))
	case m.Part != nil:
		return fmt.Sprintf("Part{%d, %s, +%d -%d}", m.Part.Part, last(m.Part.Type), len(m.Part.Upserts), len(m.Part.Removes))
	case m.Change != nil:
		return fmt.Sprintf("Change{%s, view %d, revision %s, +%d -%d}", last(m.Change.Type), m.Change.View, number(m.Change.Revision),
			len(m.Change.Upserts), len(m.Change.Removes))
	case m.Wanted != nil:
		return fmt.Sprintf("Wanted{%d}", m.Wanted.Id)
	case m.Because != nil:
		return fmt.Sprintf("Because{id %d, %d rows, %d missing}", m.Because.Id, len(m.Because.Rows), len(m.Because.Missing))
	case m.Answer != nil:
		return fmt.Sprintf("Answer{id %d, %d resources}", m.Answer.Id, len(m.Answer.Resources))
	case m.Fetch != nil:
		return fmt.Sprintf("Fetch{id %d, %s}", m.Fetch.Id, m.Fetch.Method)
	case m.Get != nil:
		return fmt.Sprintf("Get{id %d, %s, %d keys}", m.Get.Id, m.Get.Table, len(m.Get.Keys))
	case m.Wake != nil:
		return fmt.Sprintf("Wake{%d, after %d ms}", m.Wake.Id, m.Wake.AfterMs)
	case m.Store != nil:
		return describeStore(m.Store)
	case m.Stored != nil:
		return describeStored(m.Stored)
	case m.Called != nil:
		return fmt.Sprintf("Called{%d, code %d, %d bytes}", m.Called.Id, m.Called.Code, len(m.Called.Response))
	case m.Measure != nil:
		return fmt.Sprintf("Measure{%d samples}", len(m.Measure.Samples))
	}
	return "a message of a kind that is not known"
}

func describeStore(m *pb.Store) string {
	return fmt.Sprintf("Store{id %d, verb %d, %s %s/%s, object of %d bytes, version %q}", m.Id, m.Verb, m.Table, m.Namespace, m.Name, len(m.Object), m.Version)
}

func describeStored(m *pb.Stored) string {
	return fmt.Sprintf("Stored{id %d, code %d, object of %d bytes, %d objects, field %q}", m.Id, m.Code, len(m.Object), len(m.Objects), m.Field)
}

func number(r *pb.Revision) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprint(r.Number)
}

func given(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

func tables(list []*pb.TableRows) string {
	var b strings.Builder
	for _, t := range list {
		fmt.Fprintf(&b, ", %s +%d -%d", t.Table, len(t.Upserts), len(t.Deletes))
		if len(t.Upserts) > 0 {
			fmt.Fprintf(&b, " (%s …)", t.Upserts[0].Key)
		}
	}
	return b.String()
}

// last is the short name of a type.
func last(typeURL string) string { return typeURL[strings.LastIndexAny(typeURL, "/.")+1:] }

func short(types []string) []string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = last(t)
	}
	return names
}
