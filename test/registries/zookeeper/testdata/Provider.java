package com.example;

import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.ServiceConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;

import java.util.Map;

/**
 * A provider that registers as Dubbo itself does, until its standard input ends. Arguments: ZooKeeper's HOST:PORT, the
 * port of its protocol dubbo, that of tri, and register-mode (interface, instance or all).
 */
public class Provider {
    public static void main(String[] args) throws Exception {
        ApplicationConfig application = new ApplicationConfig("greetings");
        application.setRegisterMode(args[3]);
        application.setMetadataType("remote");
        application.setQosEnable(false);
        RegistryConfig registry = new RegistryConfig("zookeeper://" + args[0]);
        DubboBootstrap dubbo = DubboBootstrap.getInstance().application(application).registry(registry)
                .protocol(new ProtocolConfig("dubbo", Integer.parseInt(args[1]))).protocol(new ProtocolConfig("tri", Integer.parseInt(args[2])));
        ServiceConfig<Greeter> service = new ServiceConfig<>();
        service.setInterface(Greeter.class);
        service.setRef(name -> "hello " + name);
        service.setGroup("blue");
        service.setVersion("1.0.0");
        service.setWeight(300);
        service.setTag("canary");
        service.setTimeout(2000);
        service.setParameters(Map.of("team", "shop"));
        dubbo.service(service).start();
        while (System.in.read() >= 0) {
        }
        dubbo.stop();
    }
}

/** What it provides. */
interface Greeter {
    String greet(String name);
}
