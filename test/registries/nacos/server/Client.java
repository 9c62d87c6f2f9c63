import com.alibaba.nacos.api.NacosFactory;
import com.alibaba.nacos.api.naming.pojo.Instance;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Properties;

/** Registers instances of a service by Nacos' own client, for as long as it runs: SERVER USER PASSWORD SERVICE PORT ADDRESS... */
public class Client {
    public static void main(String[] args) throws Exception {
        var access = new Properties();
        access.put("serverAddr", args[0]);
        access.put("username", args[1]);
        access.put("password", args[2]);
        var all = new ArrayList<Instance>();
        for (var address : Arrays.asList(args).subList(5, args.length)) {
            var one = new Instance();
            one.setIp(address);
            one.setPort(Integer.parseInt(args[4]));
            all.add(one);
        }
        NacosFactory.createNamingService(access).batchRegisterInstance(args[3], "DEFAULT_GROUP", all);
        Thread.sleep(Long.MAX_VALUE);
    }
}
