import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.netflix.eureka.server.EnableEurekaServer;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.http.SessionCreationPolicy;
import org.springframework.security.crypto.password.NoOpPasswordEncoder;
import org.springframework.security.crypto.password.PasswordEncoder;
import org.springframework.security.web.SecurityFilterChain;

/** A Eureka server that asks everybody for a name and a password (spring.security.user.name and .password), unless it is open. */
@SpringBootConfiguration(proxyBeanMethods = false)
@EnableAutoConfiguration
@EnableEurekaServer
public class Server {
    public static void main(String[] args) {
        SpringApplication.run(Server.class, args);
    }

    /** Otherwise each request costs a tenth of a second of bcrypt. */
    @Bean
    @SuppressWarnings("deprecation")
    PasswordEncoder plain() {
        return NoOpPasswordEncoder.getInstance();
    }

    @Bean
    SecurityFilterChain everybody(HttpSecurity http, @Value("${open:false}") boolean open) throws Exception {
        return http.csrf(csrf -> csrf.disable()).httpBasic(Customizer.withDefaults())
                .authorizeHttpRequests(all -> { if (open) all.anyRequest().permitAll(); else all.anyRequest().authenticated(); })
                .sessionManagement(s -> s.sessionCreationPolicy(SessionCreationPolicy.STATELESS)).build();
    }
}
